"""How many training images are needed: pipelines of equal size over 1/64 to 1/1 of Fashion-MNIST.

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
    pipeline: ComparedPipeline, labels: Tensor, network: Transformer, given: LossInputs
) -> tuple[Tensor, Losses]:
    labels = labels[given.rows]
    zero = torch.zeros((), device=labels.device)
    if pipeline.localiser == "none":
        total = F.cross_entropy(network.classifier(given.views), labels)
        return total, Losses(0 * total.detach(), zero)
    angles, missed = network.angles(given.views, given.angles)
    if pipeline.upright:
        shown = given.upright()
    else:
        shown = network.uprighted(given.views, angles if pipeline.downstream else angles.detach())
    total = F.cross_entropy(network.classifier(shown), labels)
    if pipeline.angle:
        total = total + missed
    circle = circle_loss(given.angles, to_unit(angles.detach())).mean()
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
    """Accuracy on turned and on upright held-out images, and the error of the angle."""
    model = cast(Transformer, trained.model).eval()
    images, device, turned = trained.held_out, trained.device, TurnedImages(SIDE)
    labels = labels_of(images, classes_of(trained.fit.images), device)
    right: dict[str, list[Tensor]] = {"turned": [], "upright": []}
    missed = []
    for draw in range(TURNS):
        angles = draw_angles("evaluation", draw, 0, len(images)).to(device)
        for start in range(0, len(images), batch):
            part = slice(start, start + batch)
            prepared = turned.prepare(images.images[part].to(device))
            for name, turns in (("turned", angles[part]), ("upright", 0 * angles[part])):
                logits, found = model(turned.turn(prepared, turns))
                right[name].append((logits.argmax(-1) == labels[part]).float())
                if found is not None and name == "turned":
                    missed.append(torch.cos(found - angles[part]).clamp(-1, 1).acos())
    result: JsonDict = {name: torch.cat(rows).mean().item() for name, rows in right.items()}
    if missed:
        errors = torch.cat(missed)
        result |= {
            "mean": math.degrees(errors.mean().item()),
            "median": math.degrees(errors.median().item()),
        }
    return {**result, "n": TURNS * len(images), "trained_on": len(trained.fit.rows)}


# --- what was found ---


def run(settings: ReproduceSettings, records: Records) -> Finding:
    cells: Record = {}
    for name in PIPELINES:
        for share in settings.pick(quick=(16, 1), full=SHARES):
            mine = {"pipeline": name, "share": share}
            runs = [r for r in records.values() if r.tags == mine and r.finished]
            if runs:
                cells[f"{name}, {share}"] = cell(runs)
    notes = data_notes(records.values())
    data = {"cells": cells, "notes": notes}
    ours, why = conclude(data)
    return Finding(ours, settings.pick(quick=QUICK, full="") + why, data)


def cell(runs: Sequence[TrainingRecord]) -> Record:
    measured = [run.measured for run in runs]
    found: Record = {"images": measured[0]["trained_on"], "parameters": runs[0].parameters}
    for name in ("turned", "upright", "mean"):
        values = [one[name] for one in measured if name in one]
        if values:
            found[name] = spread(values)
    return found


def conclude(data: Record) -> Conclusion:
    cells = data["cells"]
    ours = {}
    if len(curves(cells)) == len(PIPELINES):
        for rival in (BASE, GROUP):
            ours[f"{CONFIRMED}, against {PIPELINES[rival].words}"] = verdict(cells, rival)
    for name, one in curves(cells).items():
        listed = ", ".join(f"{value:.1%} of {images:,}" for images, value in one)
        ours[f"accuracy at any angle by training images, {PIPELINES[name].title}"] = listed
    for name, images in needed(cells).items():
        ours[f"images for what {PIPELINES[BASE].title} reaches, {PIPELINES[name].title}"] = images
    return ours, sentence(data)


BASE = "augmented"  # whose accuracy with all images the others are asked for


Curve = Sequence[tuple[int, float]]  # numbers of images and mean accuracies


def curves(cells: Mapping[str, Record]) -> dict[str, Curve]:
    """For every pipeline, numbers of images and mean accuracies, from the fewest."""
    found: dict[str, Curve] = {}
    for name in PIPELINES:
        mine = [one for key, one in cells.items() if key.split(", ")[0] == name]
        if mine:
            found[name] = sorted((one["images"], one["turned"]["mean"]) for one in mine)
    return found


def needed(cells: Mapping[str, Record]) -> dict[str, str]:
    """How many images each pipeline needs for the accuracy of augmentation with all of them."""
    known = curves(cells)
    if BASE not in known:
        return {}
    goal = known[BASE][-1][1]
    return {name: _images_for(goal, one) for name, one in known.items() if name != BASE}


def _images_for(goal: float, curve: Curve) -> str:
    """Between two measured numbers of images, by their logarithms."""
    for place, (images, value) in enumerate(curve):
        if value < goal:
            continue
        if place == 0:
            return f"at most {images:,}"
        fewer, less = curve[place - 1]
        part = (goal - less) / (value - less)
        return f"about {round(fewer * (images / fewer) ** part, -2):,.0f}"
    return f"more than {curve[-1][0]:,} ({curve[-1][1]:.1%})"


GROUP = "c8"
CONFIRMED = "canonicalisation lowers the sample complexity"


def against(cells: Mapping[str, Record], rival: str) -> dict[int, int]:
    """By the number of images, whether the best canonicaliser is better (1) or worse (−1)."""
    found = {}
    for share in {int(key.split(", ")[1]) for key in cells}:
        rows = [cells[f"{name}, {share}"] for name in CANONICALISERS]
        best = max(rows, key=lambda one: float(one["turned"]["mean"]))
        found[best["images"]] = compare(best["turned"], cells[f"{rival}, {share}"]["turned"])
    return dict(sorted(found.items()))


def verdict(cells: Mapping[str, Record], rival: str) -> str:
    """Whether the paper's claim holds against augmentation, or against the C8-equivariant CNN."""
    signs = against(cells, rival)
    said = []
    for sign, words in ((1, "better"), (0, "not clearly different"), (-1, "worse")):
        images = [f"{number:,}" for number, found in signs.items() if found == sign]
        if images:
            said.append(f"{words} with {enumerated(images)} images")
    # With all images, a gain is no longer one of sample complexity.
    fewer = [sign for number, sign in signs.items() if number < max(signs)]
    holds = 1 in fewer and -1 not in fewer
    head = "confirmed" if holds else "in part" if 1 in fewer else "not confirmed"
    return f"{head}: the best canonicaliser is {enumerated(said)}"


def enumerated(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def sentence(data: Record) -> str:
    cells, known = data["cells"], curves(data["cells"])
    if len(known) < len(PIPELINES):
        return "Not all pipelines have been trained yet."
    parts = [
        "That canonicalisation lowers the sample complexity is, against a CNN with augmentation, "
        f"{verdict(cells, BASE)}; against a C8-equivariant CNN, {verdict(cells, GROUP)}.",
        *(_with_images(known, place) for place in (0, -1)),
        _suffices(cells),
        _localisers(known),
        f"All have {min(_sizes(data)):,} to {max(_sizes(data)):,} parameters and are trained for "
        "as many steps; differences are judged by Welch's test over seeds.",
    ]
    return " ".join([*parts, *data["notes"]])


def _with_images(known: Mapping[str, Curve], place: int) -> str:
    """The accuracies with the fewest or with all images."""
    found = {name: one[place][1] for name, one in known.items()}
    best = max(CANONICALISERS, key=lambda name: found[name])
    return (
        f"With {known[BASE][place][0]:,} training images, {PIPELINES[GROUP].words} has "
        f"{found[GROUP]:.1%}, the best canonicaliser, {PIPELINES[best].words}, {found[best]:.1%}, "
        f"and {PIPELINES[BASE].words} {found[BASE]:.1%}."
    )


def _suffices(cells: Mapping[str, Record]) -> str:
    goal, images = curves(cells)[BASE][-1][1], needed(cells)
    listed = ", ".join(f"{number} for {PIPELINES[name].words}" for name, number in images.items())
    return (
        f"The {goal:.1%} that {PIPELINES[BASE].words} reaches with all images takes this many "
        f"images: {listed}."
    )


def _localisers(known: Mapping[str, Curve]) -> str:
    top = {name: one[-1][1] for name, one in known.items()}
    return (
        "In a spatial transformer, with all images, the ring as the localisation network gives "
        f"{top['ring']:.1%}, the paper's network {top['bic']:.1%}, a CNN with the angle loss "
        f"{top['cnn']:.1%}, and a CNN without it, as spatial transformers are trained, "
        f"{top['stn']:.1%}."
    )


def _sizes(data: Record) -> list[int]:
    return [one["parameters"] for one in data["cells"].values()]


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
