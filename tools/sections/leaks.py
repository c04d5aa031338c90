"""Sections: how much of the angle the views themselves give away."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sections.text import Record, count, hardware, plural, rho, section, table

TABLE = "<!-- this table is written by: python tools/results_page.py -->"
TABLE_END = "<!-- end of the table -->"
RENDERINGS = {
    "bilinear": "bilinear, same resolution, disc only",
    "paper": "paper: padded, bilinear, same resolution",
    "gaussian": "Gaussian, then bicubic at under half the size",
    "leakfree": "leak-free",
    "leakfree-192-192-sigma1.1-reach0.95": "leak-free, 192 px, as for `general`",
}
NOISES = ("white", "pink", "blurred", "jpeg75", "jpeg85", "jpeg95")


def leak_table(leaks: Sequence[Record]) -> str:
    order = list(RENDERINGS)
    rows = [
        [
            RENDERINGS.get(leak["rendering"], leak["rendering"]),
            leak["noise"].replace("jpeg", "pink, JPEG q"),
            leak["canary"],
            rho(leak, "rho4"),
            rho(leak, "rho1"),
            f"{leak['parent']} px",
            count(leak["views"]),
            count(leak["test_views"]),
            hardware(leak),
        ]
        for leak in sorted(
            leaks,
            key=lambda leak: (
                order.index(leak["rendering"]) if leak["rendering"] in order else len(order),
                NOISES.index(leak["noise"]) if leak["noise"] in NOISES else len(NOISES),
                leak["canary"],
            ),
        )
    ]
    head = "views are made by|noise|canary|ρ₄ [95% CI]|ρ₁ [95% CI]"
    head += "|parents|training views|test views|on"
    return table(head.split("|"), rows, left=3)


def leaks_section(leaks: Sequence[Record]) -> Iterator[str]:
    if leaks:
        yield section(
            "Leaks",
            "Printed by `python studies/leaks.py --out results/leaks`. A canary is a network that "
            "is trained to find the angle of rotated noise, which has no content to read it from.",
            "What to look for: ρ near 0 means that the canary read nothing, ρ near 1 that the "
            "views give the angle away (ρ₄: modulo 90°; ρ₁: completely).",
            leak_table(leaks),
            f"{leaks_mean(leaks)} [How to read this](leaks.md).",
        )


def leaks_mean(leaks: Sequence[Record]) -> str:
    sentences = []
    for rendering, name in RENDERINGS.items():
        ours = [leak for leak in leaks if leak["rendering"] == rendering]
        if not ours:
            continue
        worst = max(max(abs(leak["rho4"]), abs(leak["rho1"])) for leak in ours)
        of = f"{plural(len(ours), 'canary', 'canaries')}"
        sentences.append(f"{name}: {of}, |ρ| up to {worst:.3f}")
    spread = 1 / math.sqrt(2 * min(leak["test_views"] for leak in leaks))
    text = f"What it means: {'; '.join(sentences)}. By chance alone, ρ has a standard deviation of "
    text += f"{spread:.3f}, so a canary at that level read nothing."
    groups = same_answers(leaks)
    if groups:
        listed = "; ".join(", ".join(names) for names in groups)
        text += (
            f" Rows with equal figures ({listed}) come from canaries that gave the same answer to "
            "every view. A canary that finds nothing does that, but so does one whose units are "
            "all inactive, so these rows alone do not show that there is no leak."
        )
    return text


def same_answers(leaks: Sequence[Record]) -> list[list[str]]:
    """Rows whose figures agree to five digits, which two working canaries do not produce."""
    by_figures: dict[tuple[float, float], list[str]] = {}
    for leak in leaks:
        key = (round(leak["rho4"], 5), round(leak["rho1"], 5))
        name = f"{leak['rendering']} {leak['canary']} on {leak['noise']}"
        by_figures.setdefault(key, []).append(name)
    return [names for names in by_figures.values() if len(names) > 1]


def with_leak_table(text: str, leaks: Sequence[Record]) -> str:
    """docs/leaks.md with the table and its meaning replaced between the two marks."""
    before, mark, rest = text.partition(TABLE)
    _, end, after = rest.partition(TABLE_END)
    if not (mark and end):
        raise ValueError(f"Expected {TABLE!r} and then {TABLE_END!r} in docs/leaks.md.")
    return f"{before}{TABLE}\n\n{leak_table(leaks)}\n\n{leaks_mean(leaks)}\n\n{TABLE_END}{after}"
