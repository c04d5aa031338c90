"""The sections of the page, each from findings to HTML."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence

from radialbeams.cards import to_json
from radialbeams.training.report import figures, words
from radialbeams.training.report.ambiguous import AmbiguousUnit
from radialbeams.training.report.charts import dial
from radialbeams.training.report.findings import SMALL_GROUP, Findings, GroupFigures
from radialbeams.training.report.markup import (
    folded,
    pair,
    paragraph,
    picture,
    section,
    table,
    text,
)
from radialbeams.training.report.showing import Shown
from radialbeams.training.report.words import counted, degrees, share

GROUPS = 15  # rows that are shown; the rest is folded
NAMES = 300  # skipped files listed by name for each reason
CROOKED = 500  # crooked images with pictures; more would make the page too large
# How many pictures are shown before the rest is folded.
WORST_SHOWN, AMBIGUOUS_SHOWN, CROOKED_SHOWN = 12, 12, 24


def error(findings: Findings) -> str:
    evaluation = findings.evaluation
    rows = [
        ("mean", degrees(evaluation.mean)),
        (
            "95% interval of the mean",
            f"{degrees(evaluation.mean_low)} to {degrees(evaluation.mean_high)}",
        ),
        ("median", degrees(evaluation.median)),
        ("95th percentile", degrees(evaluation.p95)),
        ("within 2°", share(evaluation.within_2)),
        ("within 5°", share(evaluation.within_5)),
        ("within 10°", share(evaluation.within_10)),
        ("upside down (150° or more)", share(evaluation.flips)),
        ("the paper's error measure", degrees(evaluation.paper_equivalent)),
    ]
    caption = (
        f"{counted(evaluation.n, 'view')} of {counted(findings.held_out, 'held-out image')}, "
        f"{counted(findings.seeds, 'random turn')} each, {findings.card.protocol.name} views"
    )
    note = ""
    if findings.shown < findings.held_out:
        note = paragraph(
            f"Charts and pictures show {findings.shown:,} evenly spaced ones of these images.",
            "soft",
        )
    charts = figures.curves(findings) + figures.histogram(findings) + figures.over_angle(findings)
    numbers = (
        f"<div><h3>Held-out images</h3>{table(('figure', 'value'), rows, caption)}{note}</div>"
    )
    return section("error", "Error", f'<div class="charts">{numbers}{charts}</div>')


def confidence(findings: Findings) -> str:
    if not findings.reliability:
        return section(
            "confidence",
            "Confidence",
            paragraph("This network gives one angle and no confidence."),
        )
    charts = figures.reliability(findings) + figures.risk_coverage(findings)
    note = paragraph(
        "Temperature, spread and thresholds were chosen on the held-out images too, but at "
        "other angles than those shown here.",
        "soft",
    )
    chosen = "".join(map(paragraph, _thresholds(findings)))
    return section("confidence", "Confidence", f'<div class="charts">{charts}</div>{chosen}{note}')


def _thresholds(findings: Findings) -> tuple[str, ...]:
    """When `upright` acts on the model's answers."""
    if findings.trust:
        return (words.OVERRIDDEN,)
    least, acting = findings.card.abstain, findings.acting
    if least is None or acting is None:
        return ()
    return words.thresholds(least), *words.few_held_out(acting, findings.held_out)


# --- pictures ---


def _list(cards: Sequence[str], first: int, *, compact: bool = False) -> str:
    """Shows the first cards and folds the rest, so that the page stays short."""
    kind = "views compact" if compact else "views"
    shown = f'<ol class="{kind}">{"".join(cards[:first])}</ol>'
    if len(cards) <= first:
        return shown
    rest = f'<ol class="{kind}" start="{first + 1}">{"".join(cards[first:])}</ol>'
    return shown + folded(f"{len(cards) - first:,} more", rest)


def worst(findings: Findings) -> str:
    intro = paragraph(
        f"The {len(findings.worst)} images with the largest errors, each in its worst view. "
        "Left: the view. Right: turned back by the model's answer. In the dial, the rays are the "
        "posterior, the dashed green hand is the true angle, and the solid red hand is the "
        "answer; 0° is at the top, and angles increase counter-clockwise."
    )
    cards = [_card(view, with_dial=True, doubted=bool(findings.trust)) for view in findings.worst]
    return section("worst", "The worst views", intro + _list(cards, WORST_SHOWN))


def sheet(findings: Findings) -> str:
    doubted = bool(findings.trust)
    last = "" if doubted else " The last words say whether upright would turn it or leave it alone."
    intro = paragraph(
        "Evenly spaced held-out images. Left: rotated at random. Right: turned back by the model's "
        f"answer.{last}"
    )
    cards = [_card(view, with_dial=False, doubted=doubted) for view in findings.sheet]
    return section("sheet", "Before and after", intro + _list(cards, len(cards), compact=True))


def _card(view: Shown, *, with_dial: bool, doubted: bool) -> str:
    """A view with its figures; `upright` turns none with a model that is `doubted`."""
    angles = [f"true {view.truth:.0f}°", f"answer {view.answer:.0f}°"]
    facts = [] if view.confidence is None else [f"{share(view.confidence)} sure"]
    if not doubted:
        facts += {None: [], True: ["turned"], False: ["left alone"]}[view.acted]
    kind = "good" if view.error <= 5 else "bad" if view.error > 10 else "fair"
    hands = dial(view.mass, view.truth, view.answer) if with_dial else None
    pictures = pair(view.before, view.after, hands) if hands else pair(view.before, view.after)
    return (
        f"<li>{pictures}"
        f'<div class="name" title="{text(view.name)}"><bdi>{text(view.name)}</bdi></div>'
        f'<div class="off {kind}">{degrees(view.error)} off</div>'
        f'<div class="facts">{_facts(angles)}<br>{_facts(facts)}</div></li>'
    )


def _facts(facts: Sequence[str]) -> str:
    """Lines break between them only."""
    return " · ".join(f"<span>{text(fact)}</span>" for fact in facts)


def crooked(findings: Findings) -> str:
    if not findings.crooked:
        return ""
    intro = paragraph(
        f"Probably not upright: {counted(len(findings.crooked), 'image')} of the folder, judged by "
        "models that were not trained on them. Left: the file. Right: turned back. Training on "
        "crooked images makes every answer less exact: correct them, or use --realign."
    )
    cards = [
        f"<li>{pair(image.before, image.after)}"
        f'<div class="name" title="{text(image.name)}"><bdi>{text(image.name)}</bdi></div>'
        f'<div class="facts">turned by {_signed(image.angle)}, {share(image.confidence)} sure</div>'
        "</li>"
        for image in findings.crooked[:CROOKED]
    ]
    rest = [
        (image.name, _signed(image.angle), share(image.confidence))
        for image in findings.crooked[CROOKED:]
    ]
    more = table(("image", "turned by", "sure"), rest, "The others") if rest else ""
    more = folded(f"{len(rest):,} more without pictures", more) if rest else ""
    shown = _list(cards, CROOKED_SHOWN, compact=True)
    return section("crooked", "Images that are not upright", intro + shown + more)


def _signed(value: float) -> str:
    return f"{value:+.1f}°".replace("-", "−")


# --- groups ---


def groups(findings: Findings) -> str:
    if not findings.groups:
        return ""
    unclear = {unit.name: words.ambiguity(unit) for unit in findings.ambiguous}
    head = ("group", "mean error", "95% interval", "within 10°", "images", "note")
    rows = [_group_row(group, unclear.get(group.name, "")) for group in findings.groups]
    small = sum(group.small for group in findings.groups)
    note = ""
    if small:
        note = paragraph(
            f"{small:,} of the {len(rows):,} groups have fewer than {SMALL_GROUP} held-out images; "
            "their means can change much with one more image.",
            "soft",
        )
    shown = table(
        head, rows[:GROUPS], "Held-out error by group, worst first; groups of few images come last"
    )
    rest = ""
    if len(rows) > GROUPS:
        rest = folded(
            f"{len(rows) - GROUPS:,} more groups", table(head, rows[GROUPS:], "The other groups")
        )
    return section("groups", "Groups", note + shown + rest)


def _group_row(group: GroupFigures, unclear: str) -> tuple[object, ...]:
    cell = group.error
    interval = f"{degrees(cell.low)} to {degrees(cell.high)}" if cell.images > 1 else "–"
    notes = [note for note in ("few images" if group.small else "", unclear) if note]
    name = group.name or "(no group)"
    right = share(group.within_10)
    return name, degrees(cell.mean), interval, right, cell.images, "; ".join(notes)


def symmetric(findings: Findings) -> str:
    if not findings.reliability:
        return ""
    unit = "groups" if findings.groups else "images"
    looked = f"the {findings.checked:,} {unit}"
    if findings.checked < findings.units:
        looked += f", of {findings.units:,}, that the model is least sure of"
    if not findings.ambiguous:
        inside = paragraph(f"Each of {looked} has one clear up in the posterior.")
        return section("symmetric", "Symmetric or ambiguous", inside)
    intro = paragraph(
        f"Without a single up in the posterior: {len(findings.ambiguous):,} of {looked}. What "
        "looks the same after a turn cannot be turned upright: leave such images out, or expect "
        "upright to leave them alone."
    )
    cards = [_ambiguous(ambiguous) for ambiguous in findings.ambiguous]
    shown = _list(cards, AMBIGUOUS_SHOWN, compact=True)
    return section("symmetric", "Symmetric or ambiguous", intro + shown)


def _ambiguous(unit: AmbiguousUnit) -> str:
    pictures = "".join(picture(pixels, unit.name) for pixels in unit.pictures)
    note = f"{degrees(unit.mean)} off on average"
    if unit.pixel_order == 1:
        note += "; its pixels are not symmetric, so the model may have learned too little about it"
    elif unit.order != unit.pixel_order:
        note += f"; in the posterior {words.directions(unit.order)}"
    return (
        f'<li><div class="pair">{pictures}</div>'
        f'<div class="name" title="{text(unit.name)}"><bdi>{text(unit.name)}</bdi></div>'
        f'<div class="off fair">{text(words.ambiguity(unit))}</div>'
        f'<div class="facts">{text(note)}</div></li>'
    )


# --- data and views ---


def skipped(findings: Findings) -> str:
    if not findings.skipped:
        return section("skipped", "Skipped files", paragraph("No file was skipped."))
    by_kind: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for file in findings.skipped:
        by_kind[_kind(file.reason)].append((str(file.path), file.reason))
    ranked = sorted(by_kind.items(), key=lambda item: -len(item[1]))
    lists = "".join(folded(f"{kind}: {len(rows):,}", _files(rows)) for kind, rows in ranked)
    intro = paragraph(f"Not used: {counted(len(findings.skipped), 'file')}.")
    return section("skipped", "Skipped files", intro + lists)


def _kind(reason: str) -> str:
    """The part of a reason that many files share: before numbers, names and explanations."""
    return re.split(r"[:;,.(]| of | by |\d", reason)[0].strip() or reason


def _files(rows: Sequence[tuple[str, str]]) -> str:
    more = paragraph(f"and {len(rows) - NAMES:,} more", "soft") if len(rows) > NAMES else ""
    return table(("file", "why"), rows[:NAMES], "Files that were not used") + more


def views(findings: Findings) -> str:
    leak = paragraph(words.leak(findings.canary))
    if findings.canary is not None:
        leak += paragraph(words.leak_source(findings.canary, findings.card.parent_size), "soft")
    card = findings.card
    made = paragraph(
        f"Views of {card.network.view_size} px were made from {card.parent_size} px images under "
        f"the {card.protocol.name} protocol. A canary is a network that is trained to predict the "
        "angle of rotated noise. Noise has no upright direction, so what it finds is a trace of "
        "the rotation itself.",
        "soft",
    )
    return section("views", "Do the views give the angle away?", leak + made)


def recipe(findings: Findings) -> str:
    settings = json.dumps(to_json(findings.card).get("training", {}), indent=1, ensure_ascii=False)
    lines = "\n".join(text(line) for line in settings.splitlines())
    return section("recipe", "Recipe", folded("All settings of the run", f"<pre>{lines}</pre>"))
