"""Checks once per run whether the training images are upright, and stores the result."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from radialbeams.stored import check_fields, read_object
from radialbeams.training.data import ImageSet
from radialbeams.training.own.crooked import (
    FOLDS,
    LEAST_DEGREES,
    TURNS,
    Crooked,
    Judged,
    judge,
    listed,
)
from radialbeams.training.own.rules import Budget
from radialbeams.training.recipe import Recipe
from radialbeams.training.weights import write_json

# Of the minutes for the networks of all folds, and of the steps for each: where images are only
# listed, and where they are corrected.
TRAINING, THOROUGH = 0.2, 0.45
JUDGING = 0.15  # of the minutes or steps, at most; a slower check is made only if it is asked for
AGAINST_TRAINING = 1 / 3  # what a view costs to judge, for each that is trained on
UNSURE = 0.1  # of the images may look crooked without being sure to be


@dataclass(frozen=True)
class Checked:
    """The crooked images among those checked; `images` is 0 if nothing was checked."""

    crooked: tuple[Crooked, ...] = ()
    images: int = 0


def is_affordable(images: int, view_seconds: float, budget: Budget, batch: int) -> bool:
    """Whether the check leaves most of the time for training."""
    judged = TURNS * images
    if budget.steps is not None:
        return judged * AGAINST_TRAINING <= JUDGING * budget.steps * batch
    return judged * view_seconds <= JUDGING * 60 * (budget.minutes or 0.0)


def is_telling(judged: Judged, crooked: Sequence[Crooked]) -> bool:
    """Whether the networks know enough to blame an image.

    After too short a training they are off on many images without agreeing with themselves, and
    by chance they agree on some.
    """
    off = int((np.abs(judged.angles) >= LEAST_DEGREES).sum())
    return off - len(crooked) <= UNSURE * len(judged.angles)


def check(
    recipe: Recipe,
    images: ImageSet,
    out: Path,
    budget: Budget,
    *,
    start: Path | None,
    device: torch.device,
    thorough: bool,
    on_progress: Callable[[float], None],
) -> Checked:
    """The crooked images, judged by networks that were not trained on them; resumes if killed."""
    place = out / "crooked.json"
    if place.exists():
        return _read(place)
    share = THOROUGH if thorough else TRAINING
    judged = judge(
        recipe,
        images,
        out / "folds",
        device=device,
        steps=None if budget.steps is None else max(1, round(share * budget.steps / 2)),
        start=start,
        minutes=None if budget.minutes is None else share * budget.minutes / FOLDS,
        on_progress=on_progress,
    )
    crooked = listed(judged)
    checked = Checked(crooked, len(images)) if is_telling(judged, crooked) else Checked()
    rows = [asdict(one) for one in checked.crooked]
    write_json(place, {"images": checked.images, "crooked": rows})
    shutil.rmtree(out / "folds", ignore_errors=True)
    return checked


def _read(place: Path) -> Checked:
    values = read_object(place, "a list of crooked images")
    rows = values.get("crooked", [])
    for row in rows:
        check_fields("a crooked image", row, Crooked)
    return Checked(tuple(Crooked(**row) for row in rows), int(values.get("images", 0)))
