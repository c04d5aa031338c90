"""Inner and outer parts of the beams, by training on each alone.

`radius` hides a part of the beams from a network that was trained on whole ones, which is out of
distribution. Here every network is trained and tested on one part only. All parts have the same
number of samples, so all encoders are equal, and the views are leak-free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from radialbeams.nn.architectures import Config, Network, build, with_beams
from radialbeams.nn.beams import polar_positions
from radialbeams.nn.bic import BICConfig
from radialbeams.nn.rotation import largest_view
from radialbeams.reproduce import paper
from radialbeams.reproduce.effort import FULL, small_ring
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.seed_statistics import compare, over_seeds, spread, unclear
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.training_record import data_notes
from radialbeams.reproduce.trainings import PlannedTraining, Trained, errors
from radialbeams.stored import JsonDict
from radialbeams.training.data import ImageSet
from radialbeams.training.parts import Parts
from radialbeams.training.recipe import Recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "halves"
SEEDS = 3
STEPS: dict[str, int] = {"bic": FULL.steps, "ring": 2000}
EQUAL_AREA = 0.5**0.5  # of the radius: the disc inside is as large as the annulus outside
# From and to, as shares of the radius.
PARTS: dict[str, tuple[float, float]] = {
    "whole": (0.0, 1.0),
    "inner half": (0.0, 0.5),
    "outer half": (0.5, 1.0),
    "inner, equal area": (0.0, EQUAL_AREA),
    "outer, equal area": (EQUAL_AREA, 1.0),
}
HalvesNetwork = Literal["bic", "ring"]
KINDS: tuple[HalvesNetwork, ...] = ("bic", "ring")
TITLES = {"bic": "the paper's network", "ring": "the ring"}


class PartBeams(nn.Module):
    """(N, C, S, S) → (N, |B|, C, 2ε + 1, D): polar beams between two shares of the radius."""

    def __init__(self, config: Config, start: float, end: float) -> None:
        super().__init__()
        c = with_beams(config)
        self.shape = (c.num_beams, 2 * c.epsilon + 1, c.beam_length)
        positions = part_positions(c.num_beams, c.beam_length, c.epsilon, c.view_size, start, end)
        # From −1 to 1 between the middles of the outer pixels: ((2ε + 1)·|B|, D, 2).
        grid = positions.transpose(0, 1).flatten(0, 1) / ((c.view_size - 1) / 2) - 1
        self.grid: Tensor
        self.register_buffer("grid", grid.float(), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        beams, width, length = self.shape
        grid = self.grid.float().expand(len(images), -1, -1, -1)
        samples = F.grid_sample(images.float(), grid, align_corners=True).to(images.dtype)
        split = samples.reshape(len(images), images.shape[1], width, beams, length)
        return split.permute(0, 3, 1, 2, 4)


def part_positions(
    num_beams: int, beam_length: int, epsilon: int, size: int, start: float, end: float
) -> Tensor:
    """(|B|, 2ε + 1, D, 2): as `polar_positions`, but only between two shares of the radius."""
    whole = polar_positions(num_beams, beam_length, epsilon, size)
    share = (torch.arange(beam_length, dtype=torch.float64) + 0.5) / beam_length
    # A beam is a straight line, so two of its samples give all others.
    first, last = whole[..., :1, :], whole[..., -1:, :]
    step = (last - first) / (share[-1] - share[0])
    radii = start + (end - start) * share
    return first + step * (radii - share[0])[:, None]


def part_network(part: str) -> Any:
    def network(recipe: Recipe, images: ImageSet) -> Network:
        model = build(recipe.model)
        model.beams = PartBeams(recipe.model, *PARTS[part])
        return model

    return network


def recipe(kind: HalvesNetwork, seed: int, settings: ReproduceSettings) -> Recipe:
    size = settings.pick(quick=64, full=FULL.size)
    view = largest_view(size)
    length = view // 2 - 1
    base = Recipe(
        "coil100",
        BICConfig(
            view_size=view,
            beam_length=length,
            sampler="polar",
            latent=settings.pick(quick=32, full=128),
            hub=paper.HUB,
        ),
        size,
        protocol="leakfree",
        batch=settings.pick(quick=32, full=FULL.batch),
        steps=settings.pick(quick=20, full=STEPS[kind]),
        seed=seed,
    )
    base = paper.fitting(base, settings)
    if kind == "bic":
        return base
    ring = small_ring(view, length)
    return replace(base, model=ring, learning_rate=3e-3, weight_decay=0.05)


def trainings(settings: ReproduceSettings) -> list[PlannedTraining]:
    """All parts of the first seed, then all of the second: an interrupted run has whole seeds."""
    return [
        PlannedTraining(
            f"{kind}-{part.replace(', ', '-').replace(' ', '-')}-seed{seed}",
            recipe(kind, seed, settings),
            {"kind": kind, "part": part},
            images=settings.pick(quick=300, full=FULL.images),
            held_out=settings.pick(quick=60, full=FULL.held_out),
            measure=measure,
            parts=Parts(network=part_network(part), keeps_model=False),
        )
        for seed in settings.seeds_of(quick=1, full=SEEDS)
        for kind in KINDS
        for part in PARTS
    ]


def measure(trained: Trained) -> JsonDict:
    return {"so2": errors(trained)["so2"]}


# --- results ---


def run(settings: ReproduceSettings, records: Records) -> Finding:
    cells: Record = {}
    for kind in KINDS:
        for part in PARTS:
            runs = [
                record for record in records.values() if record.tags == {"kind": kind, "part": part}
            ]
            results = [run.errors() for run in runs if run.finished]
            cells[f"{kind}, {part}"] = {
                name: spread([result[name] for result in results]) for name in ("mean", "median")
            }
    notes = data_notes(records.values())
    data = {"cells": cells, "notes": notes, "steps": STEPS}
    ours, why = conclude(data)
    return Finding(ours, settings.pick(quick=QUICK, full="") + why, data)


BETTER = "half of the beam that suffices better"
PAIRS = {"half": "half of the radius", "equal area": "half of the area"}


def conclude(data: Record) -> Conclusion:
    cells = data["cells"]
    ours: JsonDict = {BETTER: _better(cells)}
    for name, cell in cells.items():
        kind, part = name.split(", ", 1)
        ours[f"mean error, {TITLES[kind]}, {part}"] = (
            over_seeds(cell["mean"]["values"]) if cell["mean"]["values"] else "not trained"
        )
    for kind in KINDS:
        for pair, words in PAIRS.items():
            inner, outer = _pair(cells, kind, pair)
            ours[f"inner against outer, {words}, {TITLES[kind]}"] = _comparison(inner, outer)
    return ours, sentence(data)


def _pair(cells: Mapping[str, Record], kind: str, pair: str) -> tuple[Record, Record]:
    joint = " " if pair == "half" else ", "
    inner, outer = (cells[f"{kind}, {side}{joint}{pair}"]["mean"] for side in ("inner", "outer"))
    return inner, outer


def _comparison(inner: Record, outer: Record) -> str:
    if not (inner["values"] and outer["values"]):
        return "not trained"
    verdicts = {-1: "the inner part is better", 1: "the outer part is better"}
    sign = compare(inner, outer)
    return verdicts[sign] if sign else unclear(inner, outer)


def _better(cells: Mapping[str, Record]) -> str:
    """Which half of the radius is better, for every network."""
    signs = {
        kind: compare(*_pair(cells, kind, "half"))
        for kind in KINDS
        if all(len(part["values"]) > 1 for part in _pair(cells, kind, "half"))
    }
    if not signs:
        return "open: one seed of each"
    words = {-1: "the inner", 0: "no clear difference", 1: "the outer"}
    if len(signs) == len(KINDS) and len(set(signs.values())) == 1:
        return words[signs["bic"]]
    return ", ".join(f"{TITLES[kind]}: {words[sign]}" for kind, sign in signs.items())


def sentence(data: Record) -> str:
    parts = [_network_errors(data["cells"], kind) for kind in KINDS]
    counts = [len(cell["mean"]["values"]) for cell in data["cells"].values()]
    if min(counts) < max(counts):
        parts.append(f"Rows have {min(counts)} to {max(counts)} seeds.")
    parts.append(
        "All encoders are equal, with as many samples on each part, and the views are leak-free."
    )
    return " ".join(part for part in [*parts, *data["notes"]] if part)


def _network_errors(cells: Mapping[str, Record], kind: str) -> str:
    values = [cells[f"{kind}, {part}"]["mean"]["values"] for part in PARTS]
    if not all(values):
        return ""
    whole, inner, outer, disc, annulus = map(over_seeds, values)
    return (
        f"Trained on one part of the beams alone, {TITLES[kind]} has a mean error of {inner} on "
        f"the inner half, {outer} on the outer half and {whole} on whole beams. With equal areas, "
        f"the inner disc has {disc} and the outer annulus {annulus}."
    )


def draw(record: Record) -> dict[str, Figure]:
    """The mean errors by part: a dot for every seed, and their mean."""
    from radialbeams.reproduce import figures

    figure = figures.new(figures.PAGE, 2.2)
    cells = record["data"]["cells"]
    kinds = [kind for kind in KINDS if cells[f"{kind}, whole"]["mean"]["values"]] or KINDS
    panels = figure.subplots(1, len(kinds), sharex=True, sharey=True, squeeze=False)[0]
    names = list(PARTS)
    for axes, kind, letter in zip(panels, kinds, "ab", strict=False):
        for y, part in enumerate(names):
            error = record["data"]["cells"][f"{kind}, {part}"]["mean"]
            colour = figures.BLUE if "inner" in part else figures.ORANGE
            colour = figures.BLACK if part == "whole" else colour
            axes.plot(error["values"], [y] * len(error["values"]), "o", color=colour, ms=3)
            if error["values"]:
                axes.plot([error["mean"]], [y], "|", color=colour, ms=12)
        axes.set_xlabel("mean error on unseen images")
        axes.xaxis.set_major_formatter("{x:g}°")
        axes.grid(axis="y", visible=False)
        axes.set_title(f"{letter}  {TITLES[kind]}")
    panels[0].set_xlim(0, 1.08 * panels[0].get_xlim()[1])
    panels[0].set_yticks(range(len(names)), names)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    return {"": figure}


EXPERIMENT = Experiment(
    name=NAME,
    claim=(
        "Information is expected to decrease along the beams towards the centre, because a "
        "rotation moves outer pixels further; a study of this is left for future work"
    ),
    paper={BETTER: "the outer (expected, not measured)"},
    run=run,
    draw=draw,
    conclude=conclude,
    trainings=trainings,
)
