"""How many training images pipelines of equal size need, from 1/64 to all of Fashion-MNIST.

The paper motivates canonicalisation by the sample complexity of augmentation, and hopes for spatial
transformers with its network inside. Compared, at equal parameters, steps and batches: a classifier
with augmentation, one that is equivariant to C8, a canonicaliser trained apart, and spatial
transformers whose localisation network is an ordinary CNN, the paper's network or the ring.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from radialbeams.nn.angles import circle_loss, to_unit
from radialbeams.nn.architectures import Network
from radialbeams.nn.losses import Loss, Losses, LossInputs
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.joint_fit import TurnedImages, classes_of, labels_of
from radialbeams.reproduce.pipelines import (
    CANONICALISERS,
    PIPELINES,
    ComparedPipeline,
    Transformer,
    localiser_config,
    transformer,
)
from radialbeams.reproduce.seed_statistics import compare, spread
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.training_record import TrainingRecord, data_notes
from radialbeams.reproduce.trainings import PlannedTraining, Trained
from radialbeams.stored import JsonDict
from radialbeams.training.data import ImageSet
from radialbeams.training.parts import Parts
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import Views, draw_angles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "samples"
SEEDS = 3
STEPS, BATCH = 3000, 128
IMAGES, HELD_OUT = 60_000, 1_000
SHARES = (64, 16, 4, 1)  # of the training images, one in so many
PARENT = 28  # pixels
SIDE = 28  # of the images that are turned and classified
TURNS = 2  # angles per held-out image

# --- training ---


def parts(pipeline: ComparedPipeline, share: int) -> Parts:
    def network(recipe: Recipe, images: ImageSet) -> Network:
        return cast(Network, transformer(pipeline, recipe, len(classes_of(images))))

    def loss(recipe: Recipe, images: ImageSet, device: torch.device) -> Loss:
        return partial(pipeline_loss, pipeline, labels_of(images, classes_of(images), device))

    def training_views(recipe: Recipe) -> Views:
        return cast(Views, TurnedImages(SIDE))  # prepared and turned by the same calls

    def rows(images: ImageSet) -> Sequence[int]:
        return range(0, len(images), share)

    return Parts(
        network=network, loss=loss, training_views=training_views, rows=rows, keeps_model=False
    )


def pipeline_loss(
    pipeline: ComparedPipeline, labels: Tensor, network: Transformer, inputs: LossInputs
) -> tuple[Tensor, Losses]:
    labels = labels[inputs.rows]
    zero = torch.zeros((), device=labels.device)
    if pipeline.localiser == "none":
        total = F.cross_entropy(network.classifier(inputs.views), labels)
        return total, Losses(0 * total.detach(), zero)
    angles, angle_loss = network.angles(inputs.views, inputs.angles)
    if pipeline.upright:
        images = inputs.upright()
    else:
        images = network.uprighted(inputs.views, angles if pipeline.downstream else angles.detach())
    total = F.cross_entropy(network.classifier(images), labels)
    if pipeline.angle:
        total = total + angle_loss
    circle = circle_loss(inputs.angles, to_unit(angles.detach())).mean()
    return total, Losses(circle + 0 * total.detach(), zero)


def recipe(pipeline: ComparedPipeline, seed: int, settings: ReproduceSettings) -> Recipe:
    return Recipe(
        "fashion-mnist",
        localiser_config(pipeline.localiser, PARENT),
        PARENT,
        protocol="leakfree",
        batch=settings.pick(quick=16, full=BATCH),
        steps=settings.pick(quick=8, full=STEPS),
        learning_rate=2e-3,
        schedule="one-cycle",
        weight_decay=0.05,
        clip=1.0,
        seed=seed,
    )


def trainings(settings: ReproduceSettings) -> list[PlannedTraining]:
    """All pipelines of the first seed, then all of the second; few images first."""
    return [
        PlannedTraining(
            f"{name}-{share}-seed{seed}",
            recipe(pipeline, seed, settings),
            {"pipeline": name, "share": share},
            images=settings.pick(quick=400, full=IMAGES),
            held_out=settings.pick(quick=40, full=HELD_OUT),
            measure=measure,
            parts=parts(pipeline, share),
        )
        for seed in settings.seeds_of(quick=1, full=SEEDS)
        for share in settings.pick(quick=(16, 1), full=SHARES)
        for name, pipeline in PIPELINES.items()
    ]


@torch.no_grad()
def measure(trained: Trained, batch: int = 500) -> JsonDict:
    """Accuracies on rotated and upright held-out images, and the error of the angle."""
    model = cast(Transformer, trained.model).eval()
    images, device, turned = trained.held_out, trained.device, TurnedImages(SIDE)
    labels = labels_of(images, classes_of(trained.fit.images), device)
    correct: dict[str, list[Tensor]] = {"turned": [], "upright": []}
    angle_errors = []
    for draw in range(TURNS):
        angles = draw_angles("evaluation", draw, 0, len(images)).to(device)
        for start in range(0, len(images), batch):
            chunk = slice(start, start + batch)
            prepared = turned.prepare(images.images[chunk].to(device))
            for name, turns in (("turned", angles[chunk]), ("upright", 0 * angles[chunk])):
                logits, estimates = model(turned.turn(prepared, turns))
                correct[name].append((logits.argmax(-1) == labels[chunk]).float())
                if estimates is not None and name == "turned":
                    angle_errors.append(torch.cos(estimates - angles[chunk]).clamp(-1, 1).acos())
    result: JsonDict = {name: torch.cat(rows).mean().item() for name, rows in correct.items()}
    if angle_errors:
        errors = torch.cat(angle_errors)
        result |= {
            "mean": math.degrees(errors.mean().item()),
            "median": math.degrees(errors.median().item()),
        }
    return {**result, "n": TURNS * len(images), "trained_on": len(trained.fit.rows)}


# --- results ---


def run(settings: ReproduceSettings, records: Records) -> Finding:
    cells: Record = {}
    for name in PIPELINES:
        for share in settings.pick(quick=(16, 1), full=SHARES):
            tags = {"pipeline": name, "share": share}
            runs = [
                record for record in records.values() if record.tags == tags and record.finished
            ]
            if runs:
                cells[f"{name}, {share}"] = cell_of(runs)
    notes = data_notes(records.values())
    data = {"cells": cells, "notes": notes}
    ours, why = conclude(data)
    return Finding(ours, settings.pick(quick=QUICK, full="") + why, data)


def cell_of(runs: Sequence[TrainingRecord]) -> Record:
    results = [run.measured for run in runs]
    cell: Record = {"images": results[0]["trained_on"], "parameters": runs[0].parameters}
    for name in ("turned", "upright", "mean"):
        values = [result[name] for result in results if name in result]
        if values:
            cell[name] = spread(values)
    return cell


def conclude(data: Record) -> Conclusion:
    cells = data["cells"]
    ours = {}
    if len(curves(cells)) == len(PIPELINES):
        for rival in (BASE, GROUP):
            ours[f"{CONFIRMED}, against {PIPELINES[rival].words}"] = verdict(cells, rival)
    for name, curve in curves(cells).items():
        listed = ", ".join(f"{value:.1%} of {images:,}" for images, value in curve)
        ours[f"accuracy at any angle by training images, {PIPELINES[name].title}"] = listed
    for name, images in images_needed(cells).items():
        ours[f"images for what {PIPELINES[BASE].title} reaches, {PIPELINES[name].title}"] = images
    return ours, sentence(data)


BASE = "augmented"  # its accuracy with all images is the goal for the others


Curve = Sequence[tuple[int, float]]  # numbers of images and mean accuracies


def curves(cells: Mapping[str, Record]) -> dict[str, Curve]:
    """For every pipeline, numbers of images and mean accuracies, from the fewest."""
    by_pipeline: dict[str, Curve] = {}
    for name in PIPELINES:
        pipeline_cells = [cell for key, cell in cells.items() if key.split(", ")[0] == name]
        if pipeline_cells:
            by_pipeline[name] = sorted(
                (cell["images"], cell["turned"]["mean"]) for cell in pipeline_cells
            )
    return by_pipeline


def images_needed(cells: Mapping[str, Record]) -> dict[str, str]:
    """How many images each pipeline needs for the accuracy of augmentation with all of them."""
    by_pipeline = curves(cells)
    if BASE not in by_pipeline:
        return {}
    goal = by_pipeline[BASE][-1][1]
    return {name: _images_for(goal, curve) for name, curve in by_pipeline.items() if name != BASE}


def _images_for(goal: float, curve: Curve) -> str:
    """The number of images for an accuracy, interpolated between measured ones on a log scale."""
    for index, (images, value) in enumerate(curve):
        if value < goal:
            continue
        if index == 0:
            return f"at most {images:,}"
        fewer, less = curve[index - 1]
        part = (goal - less) / (value - less)
        return f"about {round(fewer * (images / fewer) ** part, -2):,.0f}"
    return f"more than {curve[-1][0]:,} ({curve[-1][1]:.1%})"


GROUP = "c8"
CONFIRMED = "canonicalisation lowers the sample complexity"


def compared_with(cells: Mapping[str, Record], rival: str) -> dict[int, int]:
    """By number of images, whether the best canonicaliser beats `rival` (1) or loses to it (−1)."""
    signs = {}
    for share in {int(key.split(", ")[1]) for key in cells}:
        rows = [cells[f"{name}, {share}"] for name in CANONICALISERS]
        best = max(rows, key=lambda cell: float(cell["turned"]["mean"]))
        signs[best["images"]] = compare(best["turned"], cells[f"{rival}, {share}"]["turned"])
    return dict(sorted(signs.items()))


def verdict(cells: Mapping[str, Record], rival: str) -> str:
    """Whether the paper's claim holds against augmentation, or against the C8-equivariant CNN."""
    signs = compared_with(cells, rival)
    parts = []
    for sign, words in ((1, "better"), (0, "not clearly different"), (-1, "worse")):
        images = [f"{number:,}" for number, observed in signs.items() if observed == sign]
        if images:
            parts.append(f"{words} with {enumerated(images)} images")
    # With all images, a gain is no longer one of sample complexity.
    fewer = [sign for number, sign in signs.items() if number < max(signs)]
    holds = 1 in fewer and -1 not in fewer
    head = "confirmed" if holds else "in part" if 1 in fewer else "not confirmed"
    return f"{head}: the best canonicaliser is {enumerated(parts)}"


def enumerated(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def sentence(data: Record) -> str:
    cells, by_pipeline = data["cells"], curves(data["cells"])
    if len(by_pipeline) < len(PIPELINES):
        return "Not all pipelines have been trained yet."
    parts = [
        "That canonicalisation lowers the sample complexity is, against a CNN with augmentation, "
        f"{verdict(cells, BASE)}; against a C8-equivariant CNN, {verdict(cells, GROUP)}.",
        *(_with_images(by_pipeline, index) for index in (0, -1)),
        _suffices(cells),
        _localisers(by_pipeline),
        f"All have {min(_sizes(data)):,} to {max(_sizes(data)):,} parameters and are trained for "
        "as many steps; differences are judged by Welch's test over seeds.",
    ]
    return " ".join([*parts, *data["notes"]])


def _with_images(by_pipeline: Mapping[str, Curve], index: int) -> str:
    """The accuracies with the fewest or with all images, in a sentence."""
    accuracy = {name: curve[index][1] for name, curve in by_pipeline.items()}
    best = max(CANONICALISERS, key=lambda name: accuracy[name])
    return (
        f"With {by_pipeline[BASE][index][0]:,} training images, {PIPELINES[GROUP].words} has "
        f"{accuracy[GROUP]:.1%}, the best canonicaliser, {PIPELINES[best].words}, "
        f"{accuracy[best]:.1%}, and {PIPELINES[BASE].words} {accuracy[BASE]:.1%}."
    )


def _suffices(cells: Mapping[str, Record]) -> str:
    goal, images = curves(cells)[BASE][-1][1], images_needed(cells)
    listed = ", ".join(f"{number} for {PIPELINES[name].words}" for name, number in images.items())
    return (
        f"The {goal:.1%} that {PIPELINES[BASE].words} reaches with all images takes this many "
        f"images: {listed}."
    )


def _localisers(by_pipeline: Mapping[str, Curve]) -> str:
    accuracy = {name: curve[-1][1] for name, curve in by_pipeline.items()}
    return (
        "In a spatial transformer, with all images, the ring as the localisation network gives "
        f"{accuracy['ring']:.1%}, the paper's network {accuracy['bic']:.1%}, a CNN with the angle "
        f"loss {accuracy['cnn']:.1%}, and a CNN without it, as spatial transformers are trained, "
        f"{accuracy['stn']:.1%}."
    )


def _sizes(data: Record) -> list[int]:
    return [cell["parameters"] for cell in data["cells"].values()]


def draw(record: Record) -> dict[str, Figure]:
    from radialbeams.reproduce import samples_figures  # it needs matplotlib

    return samples_figures.draw(record)


EXPERIMENT = Experiment(
    name=NAME,
    claim=(
        "Augmentation needs many more training images; canonicalisation lowers the sample "
        "complexity of the network behind it, and the network could be the localisation network "
        "of a spatial transformer"
    ),
    paper={},
    run=run,
    draw=draw,
    conclude=conclude,
    trainings=trainings,
)
