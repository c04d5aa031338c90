"""The three data sets of `downstream`, and the networks that turn them upright.

Rotated cut-outs on fixed backgrounds, as in SI-SCORE, for which the paper's network is trained;
whole ImageNet photos; objects of COIL-100.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from radialbeams.front.accuracy import (
    BATCH,
    ClassificationTask,
    Finder,
    finder,
    fit_head,
    rounded,
)
from radialbeams.front.classifiers import Classifier
from radialbeams.front.module import Canonicalizer
from radialbeams.nn.beams import margin
from radialbeams.nn.bic import BICConfig
from radialbeams.nn.rotation import disc, rotate
from radialbeams.reproduce import paper
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.reproduce.trainings import PlannedTraining, Trained, load, summary
from radialbeams.stored import JsonDict
from radialbeams.training.data import DataNotFound, ImageSet, place_of, siscore
from radialbeams.training.data import load as load_images
from radialbeams.training.data.archives import file_names, without_top
from radialbeams.training.prerotated import PREROTATED, turned_errors, turns_of
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import as_floats

NAME = "downstream"
SISCORE = "si-score-rotation"
FEW_CUTOUTS = "SI-SCORE from its 9 published cut-outs"


@dataclass(frozen=True)
class Objects:
    """Rotated cut-outs on fixed backgrounds; `bic` is trained on 80% of them."""

    data: str
    split_by: str
    training: str  # the name of that training
    title: str


OBJECTS = {
    "si-score": Objects(SISCORE, "default", "bic-by-image", FEW_CUTOUTS),
    "si-score-by-cut-out": Objects(
        SISCORE, "object", "bic-by-cut-out", f"{FEW_CUTOUTS}, by cut-out"
    ),
    "cut-outs": Objects("imagenet-cutouts", "object", "bic-cut-outs", "more cut-outs"),
}
GREY = 0.5  # outside a photo: neutral to the classifiers
SIZE = 224  # of SI-SCORE's images, as in the paper
BEAM_LENGTH = 91  # D
STEPS = 8192
# ImageNet samples that are also in Stanford Dogs, on which `ring` was trained: `studies/overlap.py`
# found them, and looking at the pairs confirmed it.
SEEN_BY_RING = (
    *("n02085936", "n02086646", "n02087394", "n02092002", "n02093428", "n02093647"),
    *("n02095889", "n02096177", "n02099712", "n02105056", "n02105162", "n02105251"),
    *("n02105505", "n02107683", "n02109047", "n02110806", "n02115913"),
)


# --- the paper's network on SI-SCORE ---


def trainings(settings: ReproduceSettings) -> list[PlannedTraining]:
    """`bic` on 80% of the images, and on images of other cut-outs; empty without the data."""
    available = [objects for objects in OBJECTS.values() if _is_available(objects.data, settings)]
    return [training_of(objects, settings) for objects in available]


def training_of(objects: Objects, settings: ReproduceSettings) -> PlannedTraining:
    quick = settings.quick
    recipe = Recipe(
        objects.data,
        BICConfig(view_size=SIZE, beam_length=BEAM_LENGTH, hub=paper.HUB),
        parent_size=SIZE,
        split_by=objects.split_by,
        batch=8 if quick else 128,
        steps=4 if quick else STEPS,
        learning_rate=1e-4,
    )
    return PlannedTraining(
        objects.training,
        recipe,
        {"data": objects.data, "split_by": objects.split_by},
        images=48 if quick else None,
        held_out=18 if quick else None,
        measure=_losses,
        parts=PREROTATED,
        keep=True,
    )


def _losses(trained: Trained) -> JsonDict:
    """The losses on both halves, which the paper reports; their gap shows overfitting."""
    losses = {}
    for half, images in (("training", trained.fit.images), ("test", trained.held_out)):
        errors = turned_errors(trained.model, images, trained.device)
        losses[half] = {**summary(errors), "groups": rounded(errors.groups, 2)}
    return losses


def _is_available(data: str, settings: ReproduceSettings) -> bool:
    try:
        place_of(data, settings.data)
    except DataNotFound:
        return False
    return True


# --- the three sets ---


def objects_task(
    settings: ReproduceSettings, classifier: Classifier, device: torch.device, objects: Objects
) -> tuple[ClassificationTask, Tensor]:
    """A task on the held-out images, and their angles: the images come pre-rotated."""
    training = training_of(objects, settings)
    images = load_images(
        objects.data,
        root=settings.data,
        split="test",
        split_by=objects.split_by,
        size=SIZE,
        limit=training.held_out,
    )
    bic = Canonicalizer(load(training, settings, NAME)).eval()
    task = ClassificationTask(
        objects.data,
        labels_of(images, objects.data, settings),
        lambda rows, angles: as_floats(images.images[rows]),
        lambda batch: _resized(masked(batch, GREY), classifier.size),
        classifier,
        {"bic": finder(bic, device), "ring": finder(_ring("ring"), device)},
        GREY,
    )
    return task, turns_of(images)


def labels_of(images: ImageSet, data: str, settings: ReproduceSettings) -> Tensor:
    path = place_of(data, settings.data)
    names = file_names(path)
    classes = siscore.imagenet_classes(path, {**names, **without_top(names)})
    if unknown := sorted(set(images.groups) - set(classes)):
        raise ValueError(
            f"Expected the ImageNet class of every folder of {path} in {siscore.CLASSES}; "
            f"missing: {', '.join(unknown)}. Copy the table beside the folders."
        )
    return torch.tensor([classes[group] for group in images.groups])


def imagenet_task(
    settings: ReproduceSettings, classifier: Classifier, device: torch.device
) -> tuple[ClassificationTask, int]:
    """A task on the photos that `ring` was not trained on, and how many others were left out."""
    all_images = load_images(
        "imagenet-samples", root=settings.data, limit=settings.pick(quick=24, full=None)
    )
    images = unseen_by_ring(all_images)
    finders = {"ring": finder(_ring("ring"), device)}
    if _is_available(SISCORE, settings):  # the only `bic` that was trained on ImageNet's classes
        training = training_of(OBJECTS["si-score"], settings)
        bic = Canonicalizer(load(training, settings, NAME)).eval()
        finders = {"bic": finder(bic, device), **finders}
    return photos_of_imagenet(images, classifier, finders), len(all_images) - len(images)


def unseen_by_ring(images: ImageSet) -> ImageSet:
    return images.select([row for row, key in enumerate(images.keys) if key not in SEEN_BY_RING])


def photos_of_imagenet(
    images: ImageSet, classifier: Classifier, finders: Mapping[str, Finder]
) -> ClassificationTask:
    """A task on whole photos: a disc of each is rotated, and the classifier sees its middle."""
    return ClassificationTask(
        "imagenet",
        torch.tensor([int(group) for group in images.groups]),
        lambda rows, angles: masked(rotate(as_floats(images.images[rows]), angles), GREY),
        lambda batch: _resized(_middle(masked(batch, GREY), SIZE), classifier.size),
        classifier,
        finders,
        GREY,
    )


def coil_task(
    settings: ReproduceSettings,
    classifier: Classifier,
    device: torch.device,
    show: Callable[[int, int], object],
) -> ClassificationTask:
    """A task on COIL-100 on the paper's padded canvas, as `bic` was trained.

    The classifier is a linear layer on the scores of the ImageNet classifier, fitted to the upright
    training views. Fitting takes minutes, and no rotated object is among the training views.
    """
    train, test = (
        load_images("coil100", root=settings.data, split=split, limit=limit)
        for split, limit in (
            ("train", settings.pick(quick=200, full=None)),
            ("test", settings.pick(quick=24, full=None)),
        )
    )
    side = test.images.shape[-1]
    width = margin(side)

    def turned(images: ImageSet) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda rows, angles: rotate(as_floats(images.images[rows]), angles, width=width)

    def classifier_inputs(batch: Tensor) -> Tensor:
        return _resized(masked(_middle(batch, side), 0.0), classifier.size)

    def labels(images: ImageSet) -> Tensor:
        return torch.tensor([int(group.removeprefix("obj")) - 1 for group in images.groups])

    scores = []
    for rows in torch.split(torch.arange(len(train)), BATCH):
        upright = turned(train)(rows, torch.zeros(len(rows)))
        scores.append(classifier(classifier_inputs(upright)))
        show(min(int(rows[-1]) + 1, len(train)), len(train))
    head = fit_head(torch.cat(scores), labels(train))
    return ClassificationTask(
        "coil100",
        labels(test),
        turned(test),
        classifier_inputs,
        lambda inputs: head(classifier(inputs)),
        {
            "bic": finder(
                Canonicalizer.from_pretrained("bic.coil100", abstain=None, snap="none"), device
            ),
            "ring": finder(_ring("ring.coil100"), device, side),
        },
        0.0,
    )


def _ring(name: str) -> Canonicalizer:
    return Canonicalizer.from_pretrained(name, abstain="card", snap="none")


def masked(images: Tensor, fill: float) -> Tensor:
    """The inscribed disc, which every rotation keeps; corners would differ between the curves."""
    inside = disc(images.shape[-1], images.device)
    return images * inside + fill * (1 - inside)


def _middle(images: Tensor, side: int) -> Tensor:
    start = (images.shape[-1] - side) // 2
    return images[..., start : start + side, start : start + side]


def _resized(images: Tensor, side: int) -> Tensor:
    if images.shape[-1] == side:
        return images
    return F.interpolate(images, (side, side), mode="bilinear", antialias=True)
