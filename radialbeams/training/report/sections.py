"""The sections of the page, each from findings to HTML."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence

from radialbeams.cards import to_json
from radialbeams.training.report import figures, words
from radialbeams.training.report.ambiguous import Ambiguous
from radialbeams.training.report.charts import dial
from radialbeams.training.report.findings import SMALL_GROUP, Findings, Group
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

GROUPS = 15  # rows before the rest is folded
NAMES = 300  # skipped files listed by name for each reason
CROOKED = 500  # crooked images with pictures: more would make a page that no browser likes
# How many pictures are shown before the rest is folded.
WORST_SHOWN, AMBIGUOUS_SHOWN, CROOKED_SHOWN = 12, 12, 24


def error(found: Findings) -> str:
    figures_ = found.evaluation
    rows = [
        ("mean", degrees(figures_.mean)),
        (
            "95% interval of the mean",
            f"{degrees(figures_.mean_low)} to {degrees(figures_.mean_high)}",
        ),
        ("median", degrees(figures_.median)),
        ("95th percentile", degrees(figures_.p95)),
        ("within 2°", share(figures_.within_2)),
        ("within 5°", share(figures_.within_5)),
        ("within 10°", share(figures_.within_10)),
        ("upside down (150° or more)", share(figures_.flips)),
        ("the paper's error measure", degrees(figures_.paper_equivalent)),
    ]
    caption = (
        f"{counted(figures_.n, 'view')} of {counted(found.held_out, 'held-out image')}, "
        f"{counted(found.seeds, 'random turn')} each, {found.card.protocol.name} views"
    )
    less = ""
    if found.shown < found.held_out:
        less = paragraph(
            f"Charts and pictures show {found.shown:,} evenly spaced ones of these images.", "soft"
        )
    charts = figures.curves(found) + figures.histogram(found) + figures.over_angle(found)
    numbers = (
        f"<div><h3>Held-out images</h3>{table(('figure', 'value'), rows, caption)}{less}</div>"
    )
    return section("error", "Error", f'<div class="charts">{numbers}{charts}</div>')


def confidence(found: Findings) -> str:
    if not found.reliability:
        return section(
            "confidence",
            "Confidence",
            paragraph("This network gives one angle and no confidence."),
        )
    charts = figures.reliability(found) + figures.risk_coverage(found)
    note = paragraph(
        "Temperature, spread and thresholds were chosen on the held-out images too, at other "
        "angles than those shown here.",
        "soft",
    )
    least = found.card.abstain
    chosen = "" if least is None else paragraph(words.thresholds(least))
    return section("confidence", "Confidence", f'<div class="charts">{charts}</div>{chosen}{note}')


# --- pictures ---


def _list(cards: Sequence[str], first: int, *, compact: bool = False) -> str:
    """The first few; the rest is folded, so that the page stays short enough to scroll."""
    kind = "views compact" if compact else "views"
    shown = f'<ol class="{kind}">{"".join(cards[:first])}</ol>'
    if len(cards) <= first:
        return shown
    rest = f'<ol class="{kind}" start="{first + 1}">{"".join(cards[first:])}</ol>'
    return shown + folded(f"{len(cards) - first:,} more", rest)


def worst(found: Findings) -> str:
    intro = paragraph(
        f"The {len(found.worst)} images with the largest errors, the worst view of each. Left as "
        "the model saw it, right turned back by its answer. In the dial, the rays are the "
        "posterior, the dashed green hand is the true turn, and the solid red hand the answer; "
        "0° is at the top, and angles grow counter-clockwise."
    )
    cards = [_card(one, with_dial=True) for one in found.worst]
    return section("worst", "The worst views", intro + _list(cards, WORST_SHOWN))


def sheet(found: Findings) -> str:
    intro = paragraph(
        "Evenly spaced held-out images: left turned at random, right turned back by the model's "
        "answer. The last word says whether upright would turn it back or leave it alone."
    )
    cards = [_card(one, with_dial=False) for one in found.sheet]
    return section("sheet", "Before and after", intro + _list(cards, len(cards), compact=True))


def _card(one: Shown, *, with_dial: bool) -> str:
    angles = [f"true {one.truth:.0f}°", f"answer {one.answer:.0f}°"]
    facts = [] if one.confidence is None else [f"{share(one.confidence)} sure"]
    facts += {None: [], True: ["turned"], False: ["left alone"]}[one.acted]
    kind = "good" if one.error <= 5 else "bad" if one.error > 10 else "fair"
    hands = dial(one.mass, one.truth, one.answer) if with_dial else None
    pictures = pair(one.before, one.after, hands) if hands else pair(one.before, one.after)
    return (
        f"<li>{pictures}"
        f'<div class="name" title="{text(one.name)}"><bdi>{text(one.name)}</bdi></div>'
        f'<div class="off {kind}">{degrees(one.error)} off</div>'
        f'<div class="facts">{_facts(angles)}<br>{_facts(facts)}</div></li>'
    )


def _facts(facts: Sequence[str]) -> str:
    """Lines break between them only."""
    return " · ".join(f"<span>{text(fact)}</span>" for fact in facts)


def crooked(found: Findings) -> str:
    if not found.crooked:
        return ""
    intro = paragraph(
        f"Probably turned themselves: {counted(len(found.crooked), 'image')} of the folder, judged "
        "by models that did not train on them. Left as the file is, right turned back. Training on "
        "crooked images makes every answer less exact: correct them, or use --realign."
    )
    cards = [
        f"<li>{pair(one.before, one.after)}"
        f'<div class="name" title="{text(one.name)}"><bdi>{text(one.name)}</bdi></div>'
        f'<div class="facts">turned by {_signed(one.angle)}, {share(one.confidence)} sure</div>'
        "</li>"
        for one in found.crooked[:CROOKED]
    ]
    rest = [
        (one.name, _signed(one.angle), share(one.confidence)) for one in found.crooked[CROOKED:]
    ]
    more = table(("image", "turned by", "sure"), rest, "The others") if rest else ""
    more = folded(f"{len(rest):,} more without pictures", more) if rest else ""
    shown = _list(cards, CROOKED_SHOWN, compact=True)
    return section("crooked", "Images that are not upright", intro + shown + more)


def _signed(value: float) -> str:
    return f"{value:+.1f}°".replace("-", "−")


# --- groups ---


def groups(found: Findings) -> str:
    if not found.groups:
        return ""
    unclear = {one.name: words.ambiguity(one) for one in found.ambiguous}
    head = ("group", "mean error", "95% interval", "within 10°", "images", "note")
    rows = [_group_row(group, unclear.get(group.name, "")) for group in found.groups]
    small = sum(group.small for group in found.groups)
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


def _group_row(group: Group, unclear: str) -> tuple[object, ...]:
    cell = group.error
    interval = f"{degrees(cell.low)} to {degrees(cell.high)}" if cell.images > 1 else "–"
    notes = [note for note in ("few images" if group.small else "", unclear) if note]
    name = group.name or "(no group)"
    right = share(group.within_10)
    return name, degrees(cell.mean), interval, right, cell.images, "; ".join(notes)


def symmetric(found: Findings) -> str:
    if not found.reliability:
        return ""
    unit = "groups" if found.groups else "images"
    looked = f"the {found.checked:,} {unit}"
    if found.checked < found.units:
        looked += f", of {found.units:,}, that the model is least sure of"
    if not found.ambiguous:
        inside = paragraph(f"Each of {looked} has one clear up in the posterior.")
        return section("symmetric", "Symmetric or ambiguous", inside)
    intro = paragraph(
        f"Without a single up in the posterior: {len(found.ambiguous):,} of {looked}. What "
        "looks the same after a turn cannot be turned upright: leave such images out, or expect "
        "upright to leave them alone."
    )
    cards = [_ambiguous(one) for one in found.ambiguous]
    shown = _list(cards, AMBIGUOUS_SHOWN, compact=True)
    return section("symmetric", "Symmetric or ambiguous", intro + shown)


def _ambiguous(one: Ambiguous) -> str:
    pictures = "".join(picture(pixels, one.name) for pixels in one.pictures)
    seen = f"{degrees(one.mean)} off on average"
    if one.pixel_order == 1:
        seen += "; its pixels are not symmetric, so the model may have learned too little of it"
    elif one.order != one.pixel_order:
        seen += f"; in the posterior {words.directions(one.order)}"
    return (
        f'<li><div class="pair">{pictures}</div>'
        f'<div class="name" title="{text(one.name)}"><bdi>{text(one.name)}</bdi></div>'
        f'<div class="off fair">{text(words.ambiguity(one))}</div>'
        f'<div class="facts">{text(seen)}</div></li>'
    )


# --- data and views ---


def skipped(found: Findings) -> str:
    if not found.skipped:
        return section("skipped", "Skipped files", paragraph("No file was skipped."))
    by_kind: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for one in found.skipped:
        by_kind[_kind(one.reason)].append((str(one.path), one.reason))
    ranked = sorted(by_kind.items(), key=lambda item: -len(item[1]))
    lists = "".join(folded(f"{kind}: {len(rows):,}", _files(rows)) for kind, rows in ranked)
    intro = paragraph(f"Not used: {counted(len(found.skipped), 'file')}.")
    return section("skipped", "Skipped files", intro + lists)


def _kind(reason: str) -> str:
    """The part of a reason that many files share: before numbers, names and explanations."""
    return re.split(r"[:;,.(]| of | by |\d", reason)[0].strip() or reason


def _files(rows: Sequence[tuple[str, str]]) -> str:
    more = paragraph(f"and {len(rows) - NAMES:,} more", "soft") if len(rows) > NAMES else ""
    return table(("file", "why"), rows[:NAMES], "Files that were not used") + more


def views(found: Findings) -> str:
    protocol = found.card.protocol
    said = paragraph(words.leak(found.canary))
    if found.canary is not None:
        said += paragraph(words.leak_source(found.canary, found.card.parent_size), "soft")
    made = paragraph(
        f"Views of {found.card.network.view_size} px were made from {found.card.parent_size} px "
        f"images under the {protocol.name} protocol. A canary is a network that is trained to "
        "read the angle of rotated noise, which has no up: what it reads is a trace of the "
        "rotation itself.",
        "soft",
    )
    return section("views", "Do the views give the angle away?", said + made)


def recipe(found: Findings) -> str:
    settings = json.dumps(to_json(found.card).get("training", {}), indent=1, ensure_ascii=False)
    lines = "\n".join(text(line) for line in settings.splitlines())
    return section("recipe", "Recipe", folded("All settings of the run", f"<pre>{lines}</pre>"))
