"""Is the orbit of an image a circle in the space of beam embeddings? At 1,024 rotations.

`orbit` has 64 directions, which is coarse: neighbours are then further apart than the folds of the
curve. Here 1,024 rotations are embedded by the pretrained network of COIL-100, by the same network
before training, and by the small networks of `prior-weight`, without a prior and with it. A loop
counts if it lives longer than the longest loops of clouds with the same variances and no shape. Far
directions must stay apart, or the curve crosses itself. Whether the width of the curve turns over
on the way round tells a Möbius strip from a band.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING

import torch

from radialbeams import zoo
from radialbeams.nn.bic import BIC
from radialbeams.reproduce import fine_orbit, prior_weight
from radialbeams.reproduce.cache import once
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.pretrained import open_pretrained
from radialbeams.reproduce.prior_weight import PROTOCOLS, WEIGHTS, WeightKind
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.trainings import finished

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "topology"
LEVEL = 0.05  # of the test against clouds without a shape
FOLLOWED = 0.5  # |cosine| of neighbouring axes from which on the strip's width can be followed
CIRCLE = 0.5  # scores from here on are called a circle, as in `orbit`
SHOWN = "projected"
MODEL, IMAGES = "bic.coil100", 5


def kinds() -> dict[str, tuple[str, str, str]]:
    """Of `prior-weight`, by words: the kind of training, whether trained, and the embeddings."""
    found = {}
    for protocol in PROTOCOLS:
        views = "paper's views" if protocol == "paper" else "leak-free views"
        off, heavy = WeightKind(protocol), WeightKind(protocol, "before", max(WEIGHTS))
        found[f"{views}, trained"] = (off.name, "trained", "before")
        found[f"{views}, trained with the prior"] = (heavy.name, "trained", "before")
        found[f"{views}, before training"] = (off.name, "untrained", "before")
    return found


def run(settings: ReproduceSettings, records: Records) -> Finding:
    data: Record = {"cells": {}, "shown": {}}
    given = {"quick": settings.quick, "weights": str(zoo.find(MODEL).card.sha256.safetensors)}
    place = settings.runs(NAME) / ".measured" / f"{MODEL}.json"  # minutes on a CPU
    shipped, before = once(place, given, partial(shipped_orbits, settings))
    for words, orbits in shipped.items():
        _keep(data, words, orbits)
    there = finished(prior_weight.NAME, prior_weight.trainings(settings), settings)
    for words, wanted in kinds().items():
        if orbits := _orbits(there, wanted):
            _keep(data, words, orbits)
    seeds = sorted({record.seed for record in there.values()})
    ours, why = conclude(data)
    return Finding(
        ours, settings.pick(quick=QUICK, full="") + why, data, seeds=seeds, seconds=before
    )


def _keep(data: Record, words: str, orbits: Sequence[Record]) -> None:
    data["cells"][words] = cell(orbits)
    data["shown"][words] = next((one[SHOWN] for one in orbits if SHOWN in one), None)


def shipped_orbits(settings: ReproduceSettings) -> Record:
    """Of the pretrained network: before and after the hub, before training, and of its pixels."""
    count = settings.pick(quick=1, full=IMAGES)
    there = open_pretrained(MODEL, settings, limit=count)
    if not isinstance(there.model, BIC):
        raise TypeError(f"Expected the paper's network; got {type(there.model).__name__}.")
    torch.manual_seed(0)
    fresh = BIC(there.model.config).to(there.device).eval()
    asked = {
        "pretrained": (there.model, "before"),
        "pretrained, after the hub": (there.model, "after"),
        "pretrained, before training": (fresh, "before"),
        "pretrained, pixels of the beams": (fresh, "pixels"),
    }
    turns = settings.pick(quick=64, full=fine_orbit.TURNS)
    found: Record = {words: [] for words in asked}
    for number, image in enumerate(there.images.images):
        for done, (words, (network, place)) in enumerate(asked.items()):
            settings.show(len(asked) * number + done, len(asked) * count, f"orbits, {words}")
            cloud = fine_orbit.embeddings(network, there.views, image, turns, place, there.device)
            one = fine_orbit.describe(cloud, seed=number)
            if number == 0:
                one[SHOWN] = fine_orbit.projected(cloud)
            found[words].append(one)
    return found


def _orbits(records: Records, wanted: tuple[str, str, str]) -> list[Record]:
    name, kind, place = wanted
    return [
        one
        for record in records.values()
        if record.tags["kind"] == name and record.finished
        for one in record.measured["orbits"]
        if (one["kind"], one["place"]) == (kind, place)
    ]


def cell(orbits: Sequence[Record]) -> Record:
    """Over images and seeds."""

    def average(get: Callable[[Record], float]) -> float:
        return float(f"{mean(get(one) for one in orbits):.4g}")

    centre: Record = {}
    if all("centre" in one for one in orbits):
        centre = {
            "order": {
                size: average(lambda one, size=size: one["centre"]["order"][size])  # type: ignore[misc]
                for size in orbits[0]["centre"]["order"]
            },
            "circle": average(lambda one: one["centre"]["circle"]),
            "significant": average(lambda one: float(one["centre"]["p"] <= LEVEL)),
        }
    return {
        "orbits": len(orbits),
        "centre": centre,
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
    parts = [
        _of(cells, "of the pretrained network", "pretrained", "pretrained, before training"),
        _centre(cells),
        _hub(cells),
    ]
    for views in ("leak-free views", "paper's views"):
        whose = f"of small networks on {views}"
        parts.append(_of(cells, whose, f"{views}, trained", f"{views}, before training"))
    return " ".join(part for part in [*parts, _with_prior(cells), _moebius(cells)] if part)


def _of(cells: Mapping[str, Record], whose: str, after: str, before: str) -> str:
    if after not in cells or before not in cells:
        return ""
    trained, untrained = cells[after], cells[before]
    size = max(trained["order"], key=int)
    return (
        f"At {int(size):,} rotations, the longest loop in an orbit {whose} is longer than by "
        f"chance in {trained['significant']:.0%} of {trained['orbits']} orbits (before training "
        f"{untrained['significant']:.0%}). The orbit is {_shape(trained)}: the one-circle score is "
        f"{trained['circle']:.2f} (before training {untrained['circle']:.2f}; from {CIRCLE:g} on "
        f"we speak of a circle), and {trained['crossed']:.0%} of the directions come as near to a "
        f"far one as to themselves seen by another beam ({untrained['crossed']:.0%}). The nearest "
        f"neighbour is the adjacent direction in {trained['order'][size]:.0%}."
    )


def _centre(cells: Mapping[str, Record]) -> str:
    """The curve without its width, which favours a circle."""
    names = ("pretrained", "pretrained, before training")
    pair: list[Record] = [cells[name]["centre"] for name in names if name in cells]
    if len(pair) < len(names) or not all(pair):
        return ""
    trained, untrained = pair
    orders = ", ".join(f"{value:.0%} at {int(size):,}" for size, value in trained["order"].items())
    return (
        "Averaged over the beams that see a direction, so without its width, the curve scores "
        f"{trained['circle']:.2f} (before training {untrained['circle']:.2f}), its longest loop is "
        f"longer than by chance in {trained['significant']:.0%} of the orbits "
        f"({untrained['significant']:.0%}), and the nearest neighbour is the adjacent direction in "
        f"{orders} directions."
    )


def _shape(one: Record) -> str:
    if one["circle"] < CIRCLE:
        return "a closed curve that folds back on itself, not one round circle"
    return "one circle" if one["crossed"] == 0 else "one circle with crossings"


def _hub(cells: Mapping[str, Record]) -> str:
    if "pretrained, after the hub" not in cells:
        return ""
    one = cells["pretrained, after the hub"]
    return f"After the hub, the score is {one['circle']:.2f} and {one['crossed']:.0%} cross."


def _with_prior(cells: Mapping[str, Record]) -> str:
    pairs = [
        (views, cells[f"{views}, trained"], cells[f"{views}, trained with the prior"])
        for views in ("leak-free views", "paper's views")
        if f"{views}, trained" in cells and f"{views}, trained with the prior" in cells
    ]
    said = [
        f"from {off['circle']:.2f} to {on['circle']:.2f} on {views} (crossed: "
        f"{off['crossed']:.0%} and {on['crossed']:.0%})"
        for views, off, on in pairs
    ]
    return f"The prior changes the score {' and '.join(said)}." if said else ""


def _moebius(cells: Mapping[str, Record]) -> str:
    trained = [one for words, one in cells.items() if words.endswith("trained")]
    count = sum(one["orbits"] for one in trained)
    followed = sum(one["followed"] * one["orbits"] for one in trained) / count
    over = sum(one["turned_over"] * one["orbits"] for one in trained) / count
    return (
        f"For the Möbius strip of the text there {'is' if over > LEVEL else 'is no'} evidence: in "
        f"{count} orbits of trained networks, the direction of the curve's width can be followed "
        f"all the way round in {followed:.0%}, and comes back reversed in {over:.0%}."
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
