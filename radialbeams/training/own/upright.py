"""Whether the images of a folder are upright themselves: looked for once, and noted in the run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from radialbeams.stored import check_fields, read_object
from radialbeams.training.data import ImageSet
from radialbeams.training.own.crooked import FOLDS, TURNS, Crooked, find_crooked
from radialbeams.training.own.rules import Budget
from radialbeams.training.recipe import Recipe
from radialbeams.training.weights import write_json

TRAINING = 0.2  # of the minutes, for the networks of all folds
JUDGING = 0.15  # of the minutes or steps, at most; a slower check is made only if it is asked for
AGAINST_TRAINING = 1 / 3  # what a view costs to judge, for each that is trained on
STEPS = 0.1  # of the steps of a run, for each fold


@dataclass(frozen=True)
class Checked:
    """What was found among so many images; `images` is 0 where nothing was looked for."""

    crooked: tuple[Crooked, ...] = ()
    images: int = 0


def is_affordable(images: int, view_seconds: float, budget: Budget, batch: int) -> bool:
    """Whether the check leaves most of the time to the training."""
    judged = TURNS * images
    if budget.steps is not None:
        return judged * AGAINST_TRAINING <= JUDGING * budget.steps * batch
    return judged * view_seconds <= JUDGING * 60 * (budget.minutes or 0.0)


def check(
    recipe: Recipe,
    images: ImageSet,
    out: Path,
    budget: Budget,
    *,
    start: Path | None,
    device: torch.device,
    on_progress: Callable[[float], None],
) -> Checked:
    """The crooked images, by networks that did not train on them; a killed check goes on."""
    place = out / "crooked.json"
    if place.exists():
        return _read(place)
    found = find_crooked(
        recipe,
        images,
        out / "folds",
        device=device,
        steps=None if budget.steps is None else max(1, round(STEPS * budget.steps)),
        start=start,
        minutes=None if budget.minutes is None else TRAINING * budget.minutes / FOLDS,
        on_progress=on_progress,
    )
    checked = Checked(found, len(images))
    write_json(place, {"images": len(images), "crooked": [asdict(one) for one in found]})
    shutil.rmtree(out / "folds", ignore_errors=True)
    return checked


def _read(place: Path) -> Checked:
    values = read_object(place, "a list of crooked images")
    rows = values.get("crooked", [])
    for row in rows:
        check_fields("a crooked image", row, Crooked)
    return Checked(tuple(Crooked(**row) for row in rows), int(values.get("images", 0)))
