"""Small questions: LeakyReLU against ReLU, and CIFAR-10, which the paper lists without a result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor, nn

from radialbeams.nn.architectures import Config, Network, build
from radialbeams.nn.bic import BIC, BICConfig
from radialbeams.nn.context import WheelContext
from radialbeams.nn.rotation import largest_view
from radialbeams.reproduce import paper
from radialbeams.reproduce.effort import FULL, small_ring
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.seed_statistics import (
    STUCK,
    compare,
    over_seeds,
    spread,
    unclear,
)
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.training_record import data_notes, tagged
from radialbeams.reproduce.trainings import PlannedTraining, errors
from radialbeams.training.data import DataNotFound, ImageSet, place_of
from radialbeams.training.parts import Parts
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "details"
SEEDS = 3
CIFAR_SIZE, CIFAR_LENGTH = 32, 14
CIFAR_IMAGES, CIFAR_HELD_OUT = 10_000, 1_000


@dataclass(frozen=True)
class DetailsRow:
    """One kind of training; its runs differ only in the seed."""

    name: str
    title: str
    data: str
    protocol: Protocol
    relu: bool = False
    ring: bool = False


ROWS = (
    DetailsRow("leaky-paper", "LeakyReLU, paper's views", "coil100", "paper"),
    DetailsRow("relu-paper", "ReLU, paper's views", "coil100", "paper", relu=True),
    DetailsRow("leaky-leakfree", "LeakyReLU, leak-free views", "coil100", "leakfree"),
    DetailsRow("relu-leakfree", "ReLU, leak-free views", "coil100", "leakfree", relu=True),
    DetailsRow("cifar-bic-paper", "the paper's network, paper's views", "cifar10", "paper"),
    DetailsRow("cifar-bic-leakfree", "the paper's network, leak-free views", "cifar10", "leakfree"),
    DetailsRow(
        "cifar-ring-leakfree", "the ring, leak-free views", "cifar10", "leakfree", ring=True
    ),
)


class ReluContext(WheelContext):
    """The context encoder with ReLU instead of LeakyReLU."""

    def messages(self, embeddings: Tensor) -> tuple[Tensor, Tensor]:
        nodes = F.pad(embeddings, (0, 0, 0, 1))  # (N, |B|+1, L): the hub starts at 0
        for weight in self.layers:
            nodes = F.relu(weight(self.edges @ nodes))
        return nodes[:, :-1], nodes[:, -1:]


def relu_network(recipe: Recipe, images: ImageSet) -> Network:
    """The same network with ReLU everywhere; its initial weights are equal."""
    model = build(recipe.model)
    if not isinstance(model, BIC):
        raise TypeError(f"Expected the paper's network; got {type(model).__name__}.")
    for part in model.modules():
        if isinstance(part, nn.LeakyReLU):
            part.negative_slope = 0.0
    c = model.config
    context = ReluContext(c.num_beams, c.latent, c.context_layers, c.edge_factor, c.hub)
    context.load_state_dict(model.context.state_dict())
    model.context = context
    return model


def network(row: DetailsRow, size: int, settings: ReproduceSettings) -> Config:
    if row.data == "coil100":
        return paper.network(row.protocol, size, settings, latent=32)
    latent = settings.pick(quick=32, full=128)
    if row.protocol == "paper":
        return BICConfig.for_images(size, latent=latent, hub=paper.HUB)
    view = largest_view(size)
    # Beams of the largest leak-free view are too short for the encoder at one sample a pixel.
    if row.ring:
        return small_ring(view, CIFAR_LENGTH)
    return BICConfig(
        view_size=view,
        beam_length=CIFAR_LENGTH,
        sampler="polar",
        epsilon=0,
        latent=latent,
        hub=paper.HUB,
    )


def recipe(row: DetailsRow, seed: int, settings: ReproduceSettings) -> Recipe:
    small = row.data == "cifar10"
    size = CIFAR_SIZE if small else settings.pick(quick=64, full=FULL.size)
    base = Recipe(
        row.data,
        network(row, size, settings),
        size,
        protocol=row.protocol,
        batch=settings.pick(quick=32, full=FULL.batch),
        steps=settings.pick(quick=40, full=FULL.steps),
        seed=seed,
    )
    base = paper.fitting(base, settings)
    return replace(base, learning_rate=3e-3, weight_decay=0.05) if row.ring else base


def trainings(settings: ReproduceSettings) -> list[PlannedTraining]:
    """All rows of the first seed, then all of the second; CIFAR-10 only if its files exist."""
    cifar = _has_cifar(settings)
    rows = [row for row in ROWS if row.data == "coil100" or cifar]
    return [
        PlannedTraining(
            f"{row.name}-seed{seed}",
            recipe(row, seed, settings),
            {"row": row.name},
            images=settings.pick(
                quick=300, full=FULL.images if row.data == "coil100" else CIFAR_IMAGES
            ),
            held_out=settings.pick(
                quick=60, full=FULL.held_out if row.data == "coil100" else CIFAR_HELD_OUT
            ),
            measure=errors,
            parts=Parts(network=relu_network) if row.relu else Parts(),
        )
        for seed in settings.seeds_of(quick=1, full=SEEDS)
        for row in rows
    ]


def _has_cifar(settings: ReproduceSettings) -> bool:
    """Whether CIFAR-10 is available, or has been trained on before."""
    if any(settings.runs(NAME).glob("cifar-*.json")):
        return True
    try:
        place_of("cifar10", settings.data)
    except DataNotFound:
        return False
    return True


# --- results ---


def run(settings: ReproduceSettings, records: Records) -> Finding:
    cells: Record = {}
    for row in ROWS:
        runs = tagged(records, row=row.name)
        results = [run.errors() for run in runs if run.finished]
        cells[row.name] = {
            name: spread([result[name] for result in results])
            for name in ("mean", "median", "within_10")
        }
    notes = data_notes(records.values())
    images = {record.tags["row"]: record.training_images for record in records.values()}
    data = {"cells": cells, "notes": notes, "images": images}
    ours, why = conclude(data)
    return Finding(ours, settings.pick(quick=QUICK, full="") + why, data)


def conclude(data: Record) -> Conclusion:
    cells = data["cells"]
    ours = {f"mean error, {_title(row)}": _degrees(cells[row.name]) for row in ROWS}
    for protocol in ("paper", "leakfree"):
        leaky, relu = (cells[f"{name}-{protocol}"]["mean"] for name in ("leaky", "relu"))
        views = "paper's views" if protocol == "paper" else "leak-free views"
        ours[f"LeakyReLU against ReLU, {views}"] = _comparison(leaky, relu)
    return ours, sentence(data)


def _title(row: DetailsRow) -> str:
    return row.title if row.data == "coil100" else f"CIFAR-10, {row.title}"


def _degrees(cell: Record) -> str:
    values = cell["mean"]["values"]
    if not values:
        return "not trained"
    middle = sum(cell["median"]["values"]) / len(values)
    if min(values) < STUCK:
        return f"{over_seeds(values)}, median {middle:.1f}°"
    return f"{cell['mean']['mean']:.1f}° ± {cell['mean']['std']:.1f}°, median {middle:.1f}°"


def _comparison(leaky: Record, relu: Record) -> str:
    if not (leaky["values"] and relu["values"]):
        return "not trained"
    sign = compare(leaky, relu)
    verdicts = {-1: "LeakyReLU is better", 1: "ReLU is better"}
    return verdicts[sign] if sign else unclear(leaky, relu)


def sentence(data: Record) -> str:
    cells, images = data["cells"], data["images"]
    mean_errors = [
        f"{_degrees(cells[f'{name}-{protocol}'])} with {words}"
        for protocol in ("leakfree",)
        for name, words in (("leaky", "LeakyReLU"), ("relu", "ReLU"))
    ]
    parts = [f"On COIL-100, leak-free views: {' and '.join(mean_errors)}."]
    cifar = [row for row in ROWS if row.data == "cifar10" and cells[row.name]["mean"]["values"]]
    if not cifar:
        return " ".join([*parts, "CIFAR-10 was not found.", *data["notes"]])
    listed = "; ".join(f"{row.title} {_degrees(cells[row.name])}" for row in cifar)
    parts.append(
        f"On CIFAR-10 ({images[cifar[0].name]:,} training images): {listed}. "
        f"Its images of {CIFAR_SIZE} px leave leak-free views of {largest_view(CIFAR_SIZE)} "
        "px, and many of its classes have no clear up."
    )
    return " ".join([*parts, *data["notes"]])


def draw(record: Record) -> dict[str, Figure]:
    """The mean errors by row: a dot for every seed, and their mean."""
    from radialbeams.reproduce import figures

    figure = figures.new(figures.PAGE, 2.0)
    panels = figure.subplots(1, 2)
    for axes, data, letter in zip(panels, ("coil100", "cifar10"), "ab", strict=True):
        rows = [row for row in ROWS if row.data == data]
        for y, row in enumerate(rows):
            error = record["data"]["cells"][row.name]["mean"]
            axes.plot(error["values"], [y] * len(error["values"]), "o", color=figures.BLUE, ms=3)
            if error["values"]:
                axes.plot([error["mean"]], [y], "|", color=figures.BLUE, ms=12)
        axes.set_yticks(range(len(rows)), [row.title for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0, 1.08 * axes.get_xlim()[1])
        axes.set_xlabel("mean error on unseen images")
        axes.xaxis.set_major_formatter("{x:g}°")
        axes.grid(axis="y", visible=False)
        axes.set_title(f"{letter}  {'COIL-100' if data == 'coil100' else 'CIFAR-10'}")
    return {"": figure}


EXPERIMENT = Experiment(
    name=NAME,
    claim=(
        "The encoder has LeakyReLU, printed as max(0.3x, 0), which is ReLU; there is a table for "
        "CIFAR-10 and no result"
    ),
    paper={},
    run=run,
    draw=draw,
    conclude=conclude,
    trainings=trainings,
)
