"""The first screen of the results page: the main figures in plain words, and the contents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sections.leaks import RENDERINGS
from sections.models import PUBLISHED
from sections.text import TITLES, Measured, Record, count, degrees, percent, section

READING = (
    "How to read the page: an *error* is the absolute difference between the estimated and the "
    "true angle, in degrees, on images that were held out from training and rotated by random "
    "angles of the full circle. *Within 10°* is the share of estimates with a smaller error, and "
    "*flips* are errors of 150° or more. *Views* are the square inputs of a network; the protocol "
    "`leakfree` makes them without traces of the rotation, the protocol `paper` does not. "
    "*Paper-equivalent* degrees are the paper's own measure, computed from the mean loss; they are "
    "larger than the mean error."
)


def summary(
    entries: Sequence[Measured],
    cards: Sequence[Record],
    experiments: Sequence[Record],
    leaks: Sequence[Record],
    files: Sequence[Record],
) -> Iterator[str]:
    """One bullet for each question that a newcomer has and that the files answer."""
    bullets = [
        *_photos(cards),
        *_specialists(entries),
        *_against_the_paper(entries, cards, experiments),
        *_same_views(experiments),
        *_leaks(leaks),
        *_speed(cards, files),
    ]
    if bullets:
        yield section("In short", "\n".join(f"- {bullet}" for bullet in bullets), READING)


def contents(sections: Sequence[str]) -> Iterator[str]:
    """Links to every heading of the page, experiments below their section."""
    lines = []
    for title in re.findall(r"^##+ .+$", "\n".join(sections), re.MULTILINE):
        marks, name = title.split(" ", 1)
        indent = "  " * (len(marks) - 2)
        lines.append(f"{indent}- [{name}](#{_anchor(name)})")
    if lines:
        yield section("Contents", "\n".join(lines))


def _anchor(title: str) -> str:
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip())


def _photos(cards: Sequence[Record]) -> Iterator[str]:
    card = next((card for card in cards if card["name"] == "general"), None)
    files = card.get("end_to_end", {}) if card else {}
    if card and "turned" in files:
        acted, upright = files["turned"], files["upright"]
        yield (
            f"**Everyday photos.** On {count(files['n'])} rotated files, the default model "
            f"`general` ({card['parameters'] / 1e6:.1f} M parameters) has a median error of "
            f"{degrees(files['median'], 1)}; {percent(files['within_10'], 0)} of its estimates are "
            f"within 10° and {percent(files['flips'], 0)} are flips. Of the more confident half, "
            f"{percent(files['surer_half_within_10'])} are within 10°. By default, `upright` "
            f"acts on the {percent(acted['acted_on'], 0)} whose quarter it is sure of: "
            f"{percent(acted['acted_on_within_5'], 0)} of these end within 5°, and "
            f"{percent(upright['worse_than_it_came'])} of upright photos come out worse. Much "
            "larger tools are more accurate."
        )


def _specialists(entries: Sequence[Measured]) -> Iterator[str]:
    rings = [
        f"`{entry.name}` {degrees(entry.figures['mean'])} ({entry.held_out})"
        for entry in entries
        if entry.name.startswith("ring.") and entry.jpeg is None and entry.protocol == "leakfree"
    ]
    if rings:
        yield f"**Specialised data.** Mean errors of the ring: {'; '.join(rings)}."


def _against_the_paper(
    entries: Sequence[Measured], cards: Sequence[Record], experiments: Sequence[Record]
) -> Iterator[str]:
    same, longer = [], []
    for entry in entries:
        if entry.name.startswith("bic.") and entry.jpeg is None and entry.data in PUBLISHED:
            claim, *weights = (row["paper_equivalent"] for row in PUBLISHED[entry.data])
            ours = _reproduced(experiments, entry.data)
            if ours is not None:
                theirs = "".join(f", its authors' weights have {degrees(w, 1)}" for w in weights)
                where = f"the paper claims {degrees(claim, 0)}{theirs}"
                same.append(f"{degrees(ours, 1)} on {TITLES[entry.data]} ({where})")
            card = next(card for card in cards if card["name"] == entry.name)
            files = card.get("end_to_end", {}).get("mean")
            longer.append(
                f"{degrees(entry.figures['paper_equivalent'], 1)} on {TITLES[entry.data]}"
                + (f" (mean error on files: {degrees(files, 1)})" if files else "")
            )
    if same:
        yield (
            "**The paper's network.** With its optimizer we measure a paper-equivalent error of "
            f"{' and '.join(same)}. The pretrained `bic`, trained on far more views with another "
            f"optimizer, has {' and '.join(longer)}: its views give part of the angle away."
        )


def _reproduced(experiments: Sequence[Record], data: str) -> float | None:
    for record in experiments:
        reproduction = record.get("data", {}).get("reproduction", {})
        if data in reproduction:
            return float(reproduction[data]["paper_equivalent"]["mean"])
    return None


def _same_views(experiments: Sequence[Record]) -> Iterator[str]:
    staircase = next((record for record in experiments if record["name"] == "staircase"), None)
    cells = (staircase or {}).get("data", {}).get("cells", {})
    rows = [cells.get(name, {}) for name in ("leakfree-decoder", "leakfree-batch")]
    if all(row.get("seeds") for row in rows):
        (ring, bic), seeds = (row["so2"]["mean"] for row in rows), min(r["seeds"] for r in rows)
        yield (
            "**The ring against the paper's network.** On the same leak-free views and after the "
            f"same number of them, the mean error is {degrees(ring['mean'])} ± "
            f"{degrees(ring['std'])} against {degrees(bic['mean'])} ± {degrees(bic['std'])} "
            f"({seeds} seeds)."
        )


def _leaks(leaks: Sequence[Record]) -> Iterator[str]:
    worst = {
        # "leakfree" is also rendered at the geometry of other models, which the name then tells.
        name: max(
            (abs(leak["rho4"]) for leak in leaks if leak["rendering"].split("-")[0] == name),
            default=None,
        )
        for name in RENDERINGS
    }
    leakfree, bilinear = worst["leakfree"], worst["bilinear"]
    if leakfree is not None and bilinear is not None:
        yield (
            "**Leaks.** A network that is trained on rotated noise reads the angle modulo 90° from "
            f"ordinary bilinear views (ρ₄ = {bilinear:.2f}; 1 is exact, 0 is chance), but not from "
            f"our views (|ρ₄| ≤ {leakfree:.2f})."
        )


def _speed(cards: Sequence[Record], files: Sequence[Record]) -> Iterator[str]:
    card = next((card for card in cards if card["name"] == "general"), None)
    cost = (card or {}).get("cost", {}).get("milliseconds_a_view_one_cpu_thread")
    if cost and files:
        yield (
            f"**Speed.** `general` takes {cost:.1f} ms per view on one CPU thread. `radialbeams "
            f"angle` reads {files[0]['images_a_second']:.0f} small JPEG files per second on two "
            f"cores with `{files[0]['model']}`."
        )
