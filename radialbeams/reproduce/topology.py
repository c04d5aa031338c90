"""Is the orbit of an image a circle in the space of beam embeddings? At 1,024 rotations.

`orbit` has 64 directions, which is coarse: neighbours are then further apart than the folds of the
curve. Here 1,024 rotations are embedded by the networks of `prior-weight`: without a prior, with
it, and before training. A loop counts if it lives longer than the longest loops of clouds with the
same variances and no shape. Far directions must stay apart, or the curve crosses itself. Whether
the width of the curve turns over on the way round tells a Möbius strip from a band.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import TYPE_CHECKING

from radialbeams.reproduce import prior_weight
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.prior_weight import PROTOCOLS, WEIGHTS, Kind
from radialbeams.reproduce.settings import QUICK, Settings
from radialbeams.reproduce.trainings import complete, finished

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "topology"
LEVEL = 0.05  # of the test against clouds without a shape
FOLLOWED = 0.5  # |cosine| of neighbouring axes from which on the strip's width can be followed
CIRCLE = 0.5  # scores from here on are called a circle, as in `orbit`
SHOWN = "projected"


def kinds() -> dict[str, tuple[str, str, str]]:
    """By words: the kind of training, whether it was trained, and the embeddings."""
    found = {}
    for protocol in PROTOCOLS:
        views = "paper's views" if protocol == "paper" else "leak-free views"
        off, heavy = Kind(protocol), Kind(protocol, "before", max(WEIGHTS))
        found[f"{views}, trained"] = (off.name, "trained", "before")
        found[f"{views}, trained, after the hub"] = (off.name, "trained", "after")
        found[f"{views}, trained with the prior"] = (heavy.name, "trained", "before")
        found[f"{views}, before training"] = (off.name, "untrained", "before")
        found[f"{views}, pixels of the beams"] = (off.name, "untrained", "pixels")
    return found


def run(settings: Settings, records: Records) -> Finding:
    planned = prior_weight.trainings(settings)
    there = finished(prior_weight.NAME, planned, settings)
    if not there:
        there, _ = complete(prior_weight.NAME, planned, settings)
    data: Record = {"cells": {}, "shown": {}}
    for words, wanted in kinds().items():
        orbits = _orbits(there, wanted)
        if orbits:
            data["cells"][words] = cell(orbits)
            data["shown"][words] = next((one[SHOWN] for one in orbits if SHOWN in one), None)
    seeds = sorted({record["recipe"]["seed"] for record in there.values()})
    ours, why = conclude(data)
    return Finding(ours, settings.pick(quick=QUICK, full="") + why, data, seeds=seeds)


def _orbits(records: Records, wanted: tuple[str, str, str]) -> list[Record]:
    name, kind, place = wanted
    return [
        one
        for record in records.values()
        if record["tags"]["kind"] == name and "measured" in record
        for one in record["measured"]["orbits"]
        if (one["kind"], one["place"]) == (kind, place)
    ]


def cell(orbits: Sequence[Record]) -> Record:
    """Over images and seeds."""

    def average(get: Callable[[Record], float]) -> float:
        return float(f"{mean(get(one) for one in orbits):.4g}")

    return {
        "orbits": len(orbits),
        "order": {
            size: average(lambda one, size=size: one["order"][size])  # type: ignore[misc]
            for size in orbits[0]["order"]
        },
        "circle": average(lambda one: one["circle"]),
        "longest": average(lambda one: one["longest"]),
        "null": average(lambda one: one["null"]),
        "significant": average(lambda one: float(one["p"] <= LEVEL)),
        "beyond_bootstrap": average(lambda one: float(one["loops"] >= 1)),
        "crossed": average(lambda one: one["crossed"]),
        "injective": average(lambda one: float(one["crossed"] == 0)),
        "nearest": average(lambda one: one["nearest"]),
        "width": average(lambda one: one["width"]),
        "followed": average(lambda one: float(one["followed"] >= FOLLOWED)),
        "turned_over": average(
            lambda one: float(one["turned_over"] and one["followed"] >= FOLLOWED)
        ),
    }


def conclude(data: Record) -> Conclusion:
    return {words: _row(one) for words, one in data["cells"].items()}, sentence(data["cells"])


def _row(one: Record) -> str:
    size, order = max(one["order"].items(), key=lambda item: int(item[0]))
    return (
        f"one-circle score {one['circle']:.2f}; the longest loop lives {one['longest']:.2f} of its "
        f"death, without a shape at most {one['null']:.2f} (p ≤ {LEVEL} in "
        f"{one['significant']:.0%} of {one['orbits']} orbits); nearest neighbour adjacent "
        f"{order:.0%} at {int(size):,}; {one['crossed']:.0%} of directions crossed, width "
        f"{one['width']:.2f}; axis of the width lost in {1 - one['followed']:.0%}, turned over in "
        f"{one['turned_over']:.0%}"
    )


def sentence(cells: Mapping[str, Record]) -> str:
    parts = [_of_views(cells, views) for views in ("leak-free views", "paper's views")]
    parts += [_moebius(cells)]
    return " ".join(part for part in parts if part) or "Nothing has been trained yet."


def _of_views(cells: Mapping[str, Record], views: str) -> str:
    trained, before = cells.get(f"{views}, trained"), cells.get(f"{views}, before training")
    if trained is None or before is None:
        return ""
    text = (
        f"On {views}, the longest loop of a trained network's orbit is longer than by chance in "
        f"{trained['significant']:.0%} of {trained['orbits']} orbits, before training in "
        f"{before['significant']:.0%}. Its one-circle score is {trained['circle']:.2f} "
        f"({before['circle']:.2f} before training; from {CIRCLE:g} on we speak of a circle), and "
        f"{trained['crossed']:.0%} of the directions come as near to a far one as to themselves "
        f"from another beam ({before['crossed']:.0%})"
    )
    prior = cells.get(f"{views}, trained with the prior")
    if prior is None:
        return f"{text}."
    return (
        f"{text}. With the prior the score is {prior['circle']:.2f} and {prior['crossed']:.0%} "
        "cross."
    )


def _moebius(cells: Mapping[str, Record]) -> str:
    trained = [one for words, one in cells.items() if words.endswith("trained")]
    if not trained:
        return ""
    followed = mean(one["followed"] for one in trained)
    over = mean(one["turned_over"] for one in trained)
    return (
        "For the Möbius strip of the text there "
        f"{'is' if over > LEVEL else 'is no'} evidence: the direction of the curve's width can be "
        f"followed all the way round in {followed:.0%} of the orbits, and comes back reversed in "
        f"{over:.0%}."
    )


def draw(record: Record) -> dict[str, Figure]:
    from radialbeams.reproduce import topology_figures  # it needs matplotlib

    return topology_figures.draw(record)


EXPERIMENT = Experiment(
    name=NAME,
    claim=(
        "The beam embeddings over an orbit form a surface that is topologically a circle, and "
        "their t-SNE is reminiscent of a Möbius strip; the structure emerges without the prior"
    ),
    paper={},
    run=run,
    draw=draw,
    conclude=conclude,
)
