"""What the trainings of `prior-weight` say: is the prior a second task, or too heavy?

A cell holds the results of one kind of training over its seeds (`prior_weight.cell_of`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.seed_statistics import compare, detectable, unclear
from radialbeams.stored import JsonFields


def answer(cells: Mapping[str, Record]) -> str:
    """Whether the prior is a second task or too heavy, from the weights at which it hurts."""
    if not changes(cells):
        return "not trained"
    by_weight = signs(cells)
    if not by_weight:
        return f"open, with one seed of each; {largest_change(cells)}"
    hurt = [weight for weight, verdicts in by_weight.items() if 1 in verdicts]
    if not hurt:
        text = f"neither: it does no clear harm at weight {_listed(list(by_weight))}; "
        text += f"{largest_change(cells)}; {unnoticed(cells)}"
    elif len(by_weight) == 1:
        text = f"it hurts at weight {_listed(hurt)}; lighter ones have too few seeds to judge"
    elif min(hurt) > min(by_weight):
        lighter = [weight for weight in by_weight if weight < min(hurt)]
        text = f"too heavy: it hurts at weight {_listed(hurt)} and not at {_listed(lighter)}"
    else:
        text = f"a second task: it hurts at weight {_listed(hurt)}"
    return "; ".join(filter(None, (text, helped(cells))))


def baseline(cells: Mapping[str, Record], cell: JsonFields) -> Record:
    """The cell without a prior on the same views."""
    return cells[f"{cell['protocol']}-off"]


def comparable(cells: Mapping[str, Record]) -> list[Record]:
    """The kinds with a prior for which they and the kind without have at least two seeds."""
    return [
        cell
        for cell in cells.values()
        if cell["weight"] and min(cell["seeds"], baseline(cells, cell)["seeds"]) > 1
    ]


def _sign(cells: Mapping[str, Record], cell: JsonFields) -> int:
    """Against the kind without a prior on the same views: better (−1), not clear (0), worse (1)."""
    return compare(cell["cyclic"], baseline(cells, cell)["cyclic"])


def signs(cells: Mapping[str, Record]) -> dict[float, list[int]]:
    """By weight, the signs of its comparable kinds: better (−1), not clear (0), worse (1)."""
    by_weight: dict[float, list[int]] = {}
    for cell in comparable(cells):
        by_weight.setdefault(cell["weight"], []).append(_sign(cells, cell))
    return dict(sorted(by_weight.items()))


def helped(cells: Mapping[str, Record]) -> str:
    """The kinds that are better with the prior, among how many comparisons; empty if none is."""
    compared = comparable(cells)
    better = [cell for cell in compared if _sign(cells, cell) < 0]
    if not better:
        return ""
    names = " and ".join(label(cell) for cell in better)
    return f"it helps in {len(better)} of {len(compared)} comparisons ({names})"


def unnoticed(cells: Mapping[str, Record]) -> str:
    """For each kind of views, the largest harm that these seeds could miss."""
    limits = []
    compared = comparable(cells)
    for protocol in dict.fromkeys(cell["protocol"] for cell in compared):
        least = [
            detectable(cell["cyclic"], baseline(cells, cell)["cyclic"])
            for cell in compared
            if cell["protocol"] == protocol and _sign(cells, cell) == 0
        ]
        if least:
            limits.append(f"{max(least):.2g}° on {_views(protocol)}")
    return f"a harm below {' and '.join(limits)} would go unnoticed" if limits else ""


def changes(cells: Mapping[str, Record]) -> dict[str, float]:
    """By kind, the degrees of mean error that the prior adds; below 0 is a gain."""
    return {
        name: cell["cyclic"]["mean"] - baseline(cells, cell)["cyclic"]["mean"]
        for name, cell in cells.items()
        if cell["weight"] and cell["seeds"] and baseline(cells, cell)["seeds"]
    }


def largest_change(cells: Mapping[str, Record]) -> str:
    """The change at the largest weight that was trained, in words."""
    added = changes(cells)
    weight = max(cells[name]["weight"] for name in added)
    at_weight = [change for name, change in added.items() if cells[name]["weight"] == weight]
    return (
        f"at weight {weight:g} it changes the mean error by {signed(min(at_weight))}° to "
        f"{signed(max(at_weight))}°"
    )


def against(cells: Mapping[str, Record], cell: Record) -> str:
    sign = _sign(cells, cell)
    verdicts = {-1: "better than without", 1: "worse than without"}
    return verdicts[sign] if sign else unclear(cell["cyclic"], baseline(cells, cell)["cyclic"])


def label(cell: JsonFields) -> str:
    views = _views(cell["protocol"])
    if not cell["weight"]:
        return f"{views}, no prior"
    return f"{views}, weight {cell['weight']:g} {cell['place']} the hub"


def _views(protocol: str) -> str:
    return "paper's views" if protocol == "paper" else "leak-free views"


def signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _listed(weights: Sequence[float]) -> str:
    *first, last = (f"{weight:g}" for weight in sorted(weights))
    return f"{', '.join(first)} and {last}" if first else last
