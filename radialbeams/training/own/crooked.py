"""Finds training images that are not upright, and the angle by which to correct each.

A network that trains on a crooked image learns that it is upright. So the images are dealt into
folds; for each fold a network is trained on the others, and judges what it has never seen
(cross-fitting). Each image is shown at several angles, and an answer counts as far as all of them
agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from radialbeams.nn.angles import wrap
from radialbeams.nn.architectures import Network, architecture
from radialbeams.nn.losses import Loss, Losses, LossInputs
from radialbeams.nn.posterior import ring_loss
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import predict_with
from radialbeams.training.fit import Fit, Progress
from radialbeams.training.own.scan import Scan
from radialbeams.training.parts import Parts
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import Views, draws

FOLDS = 3
TURNS = 8  # angles at which each image is judged
FIRST_TURN = math.radians(11.0)  # no multiple of 45°: nothing may depend on the grid of pixels
BATCH = 128
NEAR = math.radians(15.0)  # answers this close agree
# From here on an image counts as crooked: so many degrees, and so many times the median over all
# images; and so much of the median confidence.
LEAST_DEGREES, TIMES = 18.0, 6.0
AGREEMENT = 0.85
TRIMMED = 0.15  # of each batch

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Crooked:
    """An image that is not upright."""

    index: int
    angle: float  # degrees, counter-clockwise as displayed, in (−180, 180]: the turn that it shows
    confidence: float  # 0 to 1: how far the answers at several angles agree, and are sure


@dataclass(frozen=True)
class Judged:
    """Estimates for N images by networks that were not trained on them; each (N,)."""

    angles: Doubles  # degrees in (−180, 180]
    confidences: Doubles


def judge(
    recipe: Recipe,
    images: ImageSet,
    folder: Path,
    *,
    device: torch.device,
    folds: int = FOLDS,
    minutes: float | None = None,
    steps: int | None = None,
    start: Path | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Judged:
    """Judges every image by the network that was trained on the other folds; see `listed`.

    `minutes` or `steps` are for each fold. The runs lie in FOLDER/fold-K: a killed search goes on.
    `on_progress` gets the share that is done.
    """
    if not 2 <= folds <= len(images):
        raise ValueError(f"Expected 2 to {len(images)} folds; got {folds}.")
    recipe = recipe if steps is None else replace(recipe, steps=steps)
    fold_of = deal(len(images), folds, recipe.seed)
    angles, confidences = np.zeros(len(images)), np.zeros(len(images))
    for fold in range(folds):
        others, own = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        fit = Fit(
            recipe,
            images,
            folder / f"fold-{fold}",
            device=device,
            parts=Parts(rows=partial(_rows, others), loss=_loss),
            minutes=minutes,
            start=start,
        )
        fit.run(partial(_show, fit, fold, folds, on_progress))
        answers = _answers(fit.averaged(), images, own, fit.views, device)
        angles[own], confidences[own] = answers.angles, answers.confidences
    return Judged(angles, confidences)


def deal(count: int, folds: int, seed: int) -> NDArray[np.int64]:
    """(count,): the fold of each image; folds are equally large but for one image."""
    order = np.argsort(draws("order", seed, 0, count), kind="stable")
    fold_of = np.empty(count, dtype=np.int64)
    fold_of[order] = np.arange(count) % folds
    return fold_of


def listed(judged: Judged) -> tuple[Crooked, ...]:
    """The images that are certainly crooked, the most confident first."""
    off = np.abs(judged.angles)
    least = max(LEAST_DEGREES, TIMES * float(np.median(off)))
    sure = AGREEMENT * float(np.median(judged.confidences))
    chosen = np.flatnonzero((off >= least) & (judged.confidences >= sure))
    rows = (Crooked(int(i), float(judged.angles[i]), float(judged.confidences[i])) for i in chosen)
    return tuple(sorted(rows, key=lambda one: (-one.confidence, one.index)))


def realigned(scan: Scan, indices: Sequence[int], crooked: Iterable[Crooked]) -> Scan:
    """The scan with the angles of crooked images noted: from now on they are read upright.

    `indices` are those that the images were read by; a `Crooked` counts within them.
    """
    turned = {indices[one.index]: one.angle for one in crooked}
    images = tuple(
        replace(image, angle=image.angle + turned[i]) if i in turned else image
        for i, image in enumerate(scan.images)
    )
    return replace(scan, images=images)


# --- what does not learn from crooked images ---------------------------------------------------


def _loss(recipe: Recipe, images: ImageSet, device: torch.device) -> Loss:
    row = architecture(recipe.model)
    return trimmed_loss if row.reading == "posterior" else row.loss


def trimmed_loss(network: Network, given: LossInputs) -> tuple[Tensor, Losses]:
    """The loss of the posterior without the worst views of each batch.

    Crooked images are among those. Memorised, they would make their neighbours, which may
    look nearly the same, seem crooked instead.
    """
    logits, offsets = network(given.views)  # (N, bins) each
    loss, circle = ring_loss(given.angles, logits, offsets, given.settings)
    last = math.ceil((1 - TRIMMED) * len(loss)) - 1
    kept = loss.detach() <= loss.detach().sort().values[last]
    mean = (loss * kept).sum() / kept.sum()
    return mean, Losses(circle.mean().detach(), circle.new_zeros(()))


# --- one fold --------------------------------------------------------------------------------


def _rows(rows: NDArray[np.int64], images: ImageSet) -> list[int]:
    return [int(row) for row in rows]


def _show(
    fit: Fit,
    fold: int,
    folds: int,
    on_progress: Callable[[float], None] | None,
    progress: Progress,
) -> None:
    if on_progress is not None:
        spent = fit.at.seconds
        on_progress((fold + spent / max(spent + progress.seconds_left, 1e-9)) / folds)


@torch.inference_mode()
def _answers(
    model: Network, images: ImageSet, rows: NDArray[np.int64], views: Views, device: torch.device
) -> Judged:
    parts = [_agreed(*_each(model, part, views)) for part in _parts(images, rows, device)]
    angles, sure = (torch.cat(both).double().cpu().numpy() for both in zip(*parts, strict=True))
    return Judged(np.degrees(angles), sure)


def _parts(images: ImageSet, rows: NDArray[np.int64], device: torch.device) -> Iterator[Tensor]:
    for start in range(0, len(rows), BATCH):
        yield images.images[rows[start : start + BATCH]].to(device)
        images.release()


def _each(model: Network, parents: Tensor, views: Views) -> tuple[Tensor, Tensor]:
    """(N, TURNS) each: what every turn of an image says it shows, in radians, and how surely."""
    prepared = views.prepare(parents)
    angles, confidences = [], []
    for number in range(TURNS):
        turn = FIRST_TURN + 2 * math.pi * number / TURNS
        turns = torch.full((len(parents),), turn, device=parents.device)
        prediction = predict_with(model, views.turn(prepared, turns))
        answer, sure = (
            prediction
            if isinstance(prediction, tuple)
            else (prediction, torch.ones_like(prediction))
        )
        angles.append(wrap(answer.float() - turns))
        confidences.append(sure.float())
    return torch.stack(angles, 1), torch.stack(confidences, 1)


def _agreed(angles: Tensor, confidences: Tensor) -> tuple[Tensor, Tensor]:
    """(N,) each: the angle that has the most confidence around it, and its share of all.

    A mean of all would follow the few turns at which a network is wrong.
    """
    apart = wrap(angles[:, :, None] - angles[:, None]).abs()  # (N, TURNS, TURNS)
    support = ((apart <= NEAR) * confidences[:, None]).sum(2)  # (N, TURNS)
    best = support.argmax(1, keepdim=True)
    near = apart.gather(1, best[..., None].expand(-1, -1, TURNS)).squeeze(1) <= NEAR
    mean = (near * torch.polar(confidences, angles)).sum(1)
    return mean.angle(), support.gather(1, best).squeeze(1) / TURNS
