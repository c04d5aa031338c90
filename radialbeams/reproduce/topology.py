"""Whether the orbit of an image is a circle in the space of beam embeddings, at 1,024 rotations.

`orbit` has 64 directions, which is coarse: neighbours are then further apart than the folds of the
curve. Here 1,024 rotations are embedded by the pretrained network of COIL-100, by the same network
before training, and by the small networks of `prior-weight`, without a prior and with it. A loop
counts if it lives longer than the longest loops of clouds with the same variances and no shape. Far
directions must stay apart, or the curve crosses itself. On a Möbius strip, unlike on a plain band,
the axis of the curve's width reverses once around.
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
from radialbeams.reproduce.cache import cached
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.pretrained import open_pretrained
from radialbeams.reproduce.prior_weight import PROTOCOLS, WEIGHTS, WeightKind
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.trainings import finished

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "topology"
LEVEL = 0.05  # of the test against clouds without a shape
FOLLOWED = 0.5  # the lowest |cosine| of neighbouring axes at which the width can be followed
CIRCLE = 0.5  # the lowest score that is called a circle, as in `orbit`
PROJECTED = "projected"
MODEL, IMAGES = "bic.coil100", 5


def kinds() -> dict[str, tuple[str, str, str]]:
    """Orbits of `prior-weight` by label: kind of training, trained or not, and embeddings."""
    by_words = {}
    for protocol in PROTOCOLS:
        views = "paper's views" if protocol == "paper" else "leak-free views"
        off, heavy = WeightKind(protocol), WeightKind(protocol, "before", max(WEIGHTS))
        by_words[f"{views}, trained"] = (off.name, "trained", "before")
        by_words[f"{views}, trained with the prior"] = (heavy.name, "trained", "before")
        by_words[f"{views}, before training"] = (off.name, "untrained", "before")
    return by_words


def run(settings: ReproduceSettings, records: Records) -> Finding:
    data: Record = {"cells": {}, "shown": {}}
    conditions = {"quick": settings.quick, "weights": str(zoo.find(MODEL).card.sha256.safetensors)}
    path = settings.runs(NAME) / ".measured" / f"{MODEL}.json"  # minutes on a CPU
    pretrained, earlier_seconds = cached(path, conditions, partial(pretrained_orbits, settings))
    for words, orbits in pretrained.items():
        _store(data, words, orbits)
    trained = finished(prior_weight.NAME, prior_weight.trainings(settings), settings)
    for words, key in kinds().items():
        if orbits := _orbits(trained, key):
            _store(data, words, orbits)
    seeds = sorted({record.seed for record in trained.values()})
    ours, why = conclude(data)
    return Finding(
        ours, settings.pick(quick=QUICK, full="") + why, data, seeds=seeds, seconds=earlier_seconds
    )


def _store(data: Record, words: str, orbits: Sequence[Record]) -> None:
    data["cells"][words] = cell_of(orbits)
    data["shown"][words] = next((orbit[PROJECTED] for orbit in orbits if PROJECTED in orbit), None)


def pretrained_orbits(settings: ReproduceSettings) -> Record:
    """Orbits of the pretrained network: before and after the hub, before training, of pixels."""
    count = settings.pick(quick=1, full=IMAGES)
    held_out = open_pretrained(MODEL, settings, limit=count)
    if not isinstance(held_out.model, BIC):
        raise TypeError(f"Expected the paper's network; got {type(held_out.model).__name__}.")
    torch.manual_seed(0)
    untrained = BIC(held_out.model.config).to(held_out.device).eval()
    networks = {
        "pretrained": (held_out.model, "before"),
        "pretrained, after the hub": (held_out.model, "after"),
        "pretrained, before training": (untrained, "before"),
        "pretrained, pixels of the beams": (untrained, "pixels"),
    }
    turns = settings.pick(quick=64, full=fine_orbit.TURNS)
    orbits: Record = {words: [] for words in networks}
    for number, image in enumerate(held_out.images.images):
        for done, (words, (network, place)) in enumerate(networks.items()):
            settings.show(len(networks) * number + done, len(networks) * count, f"orbits, {words}")
            cloud = fine_orbit.embeddings(
                network, held_out.views, image, turns, place, held_out.device
            )
            orbit = fine_orbit.describe(cloud, seed=number)
            if number == 0:
                orbit[PROJECTED] = fine_orbit.projected(cloud)
            orbits[words].append(orbit)
    return orbits


def _orbits(records: Records, key: tuple[str, str, str]) -> list[Record]:
    name, kind, place = key
    return [
        orbit
        for record in records.values()
        if record.tags["kind"] == name and record.finished
        for orbit in record.measured["orbits"]
        if (orbit["kind"], orbit["place"]) == (kind, place)
    ]


def cell_of(orbits: Sequence[Record]) -> Record:
    """The mean measures of orbits over images and seeds."""

    def average(get: Callable[[Record], float]) -> float:
        return float(f"{mean(get(orbit) for orbit in orbits):.4g}")

    centre: Record = {}
    if all("centre" in orbit for orbit in orbits):
        centre = {
            "order": {
                size: average(lambda orbit, size=size: orbit["centre"]["order"][size])  # type: ignore[misc]
                for size in orbits[0]["centre"]["order"]
            },
            "circle": average(lambda orbit: orbit["centre"]["circle"]),
            "significant": average(lambda orbit: float(orbit["centre"]["p"] <= LEVEL)),
        }
    return {
        "orbits": len(orbits),
        "centre": centre,
        "order": {
            size: average(lambda orbit, size=size: orbit["order"][size])  # type: ignore[misc]
            for size in orbits[0]["order"]
        },
        "circle": average(lambda orbit: orbit["circle"]),
        "longest": average(lambda orbit: orbit["longest"]),
        "null": average(lambda orbit: orbit["null"]),
        "significant": average(lambda orbit: float(orbit["p"] <= LEVEL)),
        "beyond_bootstrap": average(lambda orbit: float(orbit["loops"] >= 1)),
        "crossed": average(lambda orbit: orbit["crossed"]),
        "injective": average(lambda orbit: float(orbit["crossed"] == 0)),
        "nearest": average(lambda orbit: orbit["nearest"]),
        "width": average(lambda orbit: orbit["width"]),
        "followed": average(lambda orbit: float(orbit["followed"] >= FOLLOWED)),
        "turned_over": average(
            lambda orbit: float(orbit["turned_over"] and orbit["followed"] >= FOLLOWED)
        ),
    }


def conclude(data: Record) -> Conclusion:
    return {words: _row(cell) for words, cell in data["cells"].items()}, sentence(data["cells"])


def _row(cell: Record) -> str:
    size, order = max(cell["order"].items(), key=lambda item: int(item[0]))
    return (
        f"one-circle score {cell['circle']:.2f}; the longest loop lives {cell['longest']:.2f} of "
        f"its death, without a shape at most {cell['null']:.2f} (p ≤ {LEVEL} in "
        f"{cell['significant']:.0%} of {cell['orbits']} orbits); nearest neighbour adjacent "
        f"{order:.0%} at {int(size):,}; {cell['crossed']:.0%} of directions crossed, width "
        f"{cell['width']:.2f}; axis of the width lost in {1 - cell['followed']:.0%}, turned over "
        f"in {cell['turned_over']:.0%}"
    )


def sentence(cells: Mapping[str, Record]) -> str:
    parts = [
        _orbit_in_words(
            cells, "of the pretrained network", "pretrained", "pretrained, before training"
        ),
        _centre(cells),
        _hub(cells),
    ]
    for views in ("leak-free views", "paper's views"):
        whose = f"of small networks on {views}"
        parts.append(
            _orbit_in_words(cells, whose, f"{views}, trained", f"{views}, before training")
        )
    return " ".join(part for part in [*parts, _with_prior(cells), _moebius(cells)] if part)


def _orbit_in_words(cells: Mapping[str, Record], whose: str, after: str, before: str) -> str:
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
    """The results for the curve without its width, which favour a circle, in a sentence."""
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


def _shape(cell: Record) -> str:
    if cell["circle"] < CIRCLE:
        return "a closed curve that folds back on itself, not one round circle"
    return "one circle" if cell["crossed"] == 0 else "one circle with crossings"


def _hub(cells: Mapping[str, Record]) -> str:
    if "pretrained, after the hub" not in cells:
        return ""
    cell = cells["pretrained, after the hub"]
    return f"After the hub, the score is {cell['circle']:.2f} and {cell['crossed']:.0%} cross."


def _with_prior(cells: Mapping[str, Record]) -> str:
    pairs = [
        (views, cells[f"{views}, trained"], cells[f"{views}, trained with the prior"])
        for views in ("leak-free views", "paper's views")
        if f"{views}, trained" in cells and f"{views}, trained with the prior" in cells
    ]
    changes = [
        f"from {off['circle']:.2f} to {on['circle']:.2f} on {views} (crossed: "
        f"{off['crossed']:.0%} and {on['crossed']:.0%})"
        for views, off, on in pairs
    ]
    return f"The prior changes the score {' and '.join(changes)}." if changes else ""


def _moebius(cells: Mapping[str, Record]) -> str:
    trained = [cell for words, cell in cells.items() if words.endswith("trained")]
    count = sum(cell["orbits"] for cell in trained)
    followed = sum(cell["followed"] * cell["orbits"] for cell in trained) / count
    over = sum(cell["turned_over"] * cell["orbits"] for cell in trained) / count
    return (
        f"For the Möbius strip of the text there {'is' if over > LEVEL else 'is no'} evidence: "
        f"in {count} orbits of trained networks, the direction of the curve's width can be "
        f"followed all the way round in {followed:.0%}, and comes back reversed in {over:.0%}."
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
