"""Chooses a recipe for a folder. Each choice comes with a sentence for the log.

A file of settings (`--config`) and options of the command override these choices.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path

from radialbeams.nn.architectures import architecture
from radialbeams.nn.rotation import largest_view
from radialbeams.stored import JsonDict, check_fields, read_object, short
from radialbeams.training.own.scan import Scan
from radialbeams.training.own.split import By
from radialbeams.training.own.starts import Start
from radialbeams.training.recipe import Recipe, RecipeFields

ENDLESS = 1_000_000  # steps of a run that is limited by minutes
SMALLEST, LARGEST = 64, 128  # pixels of the squares when training from scratch
BATCH_CPU, BATCH_GPU = 64, 512
BATCH_ENCODER = 32  # of the general model's encoder on a CPU: larger ones leave too few steps
FROZEN = 15  # of its 21 blocks on a CPU; training them all takes three times as long
FEW = 200  # training images, below which views vary more
FIXED = ("data", "protocol", "split_by", "repeats")  # fields that follow from the folder
SQUARE = 1.1  # ratio of the sides up to which a filled corner stays outside the view

# Learning rates, chosen on COIL-100 and LFW.
RATE_SCRATCH, RATE_RING, RATE_ENCODER = 3e-3, 1e-3, 1e-4

Augmenting = dict[str, bool | float]
# For new pictures of the things in the training images: only what varies between pictures.
KNOWN: Augmenting = {"zoom": 0.15, "jitter": 0.2, "noise": 0.02}
# For new things: everything that leaves a picture upright.
NEW: Augmenting = {
    **{"mirror": True, "zoom": 0.2, "aspect": 0.1, "jitter": 0.3, "gamma": 0.2, "gray": 0.1},
    **{"blur": 0.2, "noise": 0.03},
}


@dataclass(frozen=True)
class ChosenRecipe:
    """A recipe, and the reasons for its settings."""

    recipe: Recipe
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Budget:
    """The length of a run: minutes for everything, or a number of training steps."""

    minutes: float | None = 10.0
    steps: int | None = None

    def __post_init__(self) -> None:
        if (self.minutes is None) == (self.steps is None):
            raise ValueError(
                "Expected minutes or steps as the length of a run; got both or neither. Give one."
            )
        if self.minutes is not None and not 0 < self.minutes < float("inf"):
            raise ValueError(f"minutes must be above 0; got {self.minutes}.")
        if self.steps is not None and self.steps < 1:
            raise ValueError(f"steps must be at least 1; got {self.steps}.")


def plan(
    scan: Scan,
    by: By,
    training_images: int,
    start: Start | None,
    budget: Budget,
    changes: RecipeFields,
    *,
    gpu: bool,
) -> ChosenRecipe:
    """The recipe for a folder. `start` is None for training from scratch."""
    network, sentences = _from_scratch(scan) if start is None else _from_start(scan, start)
    views, sentences_on_views = _augmentation(scan, by, training_images)
    if "augmentation" in changes:
        sentences_on_views = ()
    values: JsonDict = {
        **network,
        "data": scan.folder.name or str(scan.folder),
        "protocol": "leakfree",
        "schedule": "one-cycle",
        "weight_decay": 0.05,
        "average": 0.99,
        "clip": 1.0,
        "steps": budget.steps or ENDLESS,
        "augmentation": views,
        **_pace(start, gpu),
    }
    return ChosenRecipe(
        Recipe.from_dict(_changed(values, changes)), (*sentences, *sentences_on_views)
    )


def read_config(path: Path) -> JsonDict:
    """Settings from a file: any fields of a recipe."""
    values = read_object(path, "a file of settings")
    try:
        check_settings(values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return values


def check_settings(values: RecipeFields) -> None:
    """Refuses unknown fields, and fields that follow from the folder, the start or the limit."""
    known = [entry.name for entry in fields(Recipe) if entry.name not in FIXED]
    unknown = sorted(set(map(str, values)) - {*known, *FIXED})
    if unknown:
        near = get_close_matches(unknown[0], known, 1)
        raise ValueError(
            f"Unknown in a file of settings: {', '.join(unknown)}. Known: {', '.join(known)}."
            + "".join(f" Did you mean {one}?" for one in near)
        )
    check_fields("a file of settings", values, Recipe)
    for name in FIXED:
        if name in values:
            raise ValueError(
                f"{name} follows from the folder and cannot be set; leave it out, or use "
                "`--recipe FILE` for a recipe of your own."
            )
    for name in ("model", "augmentation", "loss"):
        if not isinstance(values.get(name, {}), Mapping):
            raise ValueError(f"{name} must be an object of fields; got {short(values[name])}.")


# --- the choices ---


def _from_start(scan: Scan, start: Start) -> tuple[JsonDict, tuple[str, ...]]:
    """The network and the views of the initial weights."""
    recipe = start.recipe
    size = recipe.parent_size
    sentence = (
        f"Views of {recipe.model.view_size} pixels from squares of {size}, as {start.name} was "
        f"trained on; your images have {_side(scan)} pixels (median of the shorter sides)."
    )
    views = {"parent_size": size, "sigma": recipe.sigma, "reach": recipe.reach}
    return {"model": recipe.model.to_dict(), **views}, (sentence,)


def _from_scratch(scan: Scan) -> tuple[JsonDict, tuple[str, ...]]:
    side = _side(scan)
    size = min(max(side, SMALLEST), LARGEST)
    view = largest_view(size)
    fields = dict(architecture("ring").defaults(size))
    beams, length = (64, 32) if view >= 56 else (48, max(16, view // 2))
    model = dict(fields["model"]) if isinstance(fields["model"], Mapping) else {}
    fields["model"] = {**model, "num_beams": beams, "beam_length": length}
    sentence = (
        f"Views of {view} pixels from squares of {size}, {beams} beams of {length} samples: your "
        f"images have {side} pixels (median of the shorter sides)."
    )
    return {**fields, "parent_size": size}, (sentence,)


def _augmentation(scan: Scan, by: By, count: int) -> tuple[Augmenting, tuple[str, ...]]:
    if by == "group":
        chosen = dict(NEW)
        sentence = (
            "Views are varied strongly (mirrored, zoomed, recoloured, blurred): the model has "
        )
        sentence += "to know new groups."
    elif count < FEW:
        chosen = {**KNOWN, "zoom": 0.25, "gamma": 0.2, "blur": 0.2}
        sentence = f"Views are varied more than usual: there are only {count} images to train on."
    else:
        chosen = dict(KNOWN)
        sentence = (
            "Views are varied slightly (zoomed, brighter, noisier): new images show what the "
        )
        sentence += "others show."
    if _oblong(scan):
        chosen["fill"] = 0.3
        return chosen, (sentence, "Some views get filled corners: your images are not square.")
    return chosen, (sentence,)


def _pace(start: Start | None, gpu: bool) -> JsonDict:
    if start is None:
        return {"learning_rate": RATE_SCRATCH, "batch": BATCH_GPU if gpu else BATCH_CPU}
    if start.recipe.model.architecture != "convolutional":
        return {"learning_rate": RATE_RING, "batch": BATCH_GPU if gpu else BATCH_CPU}
    batch, frozen = (BATCH_GPU // 4, 0) if gpu else (BATCH_ENCODER, FROZEN)
    return {"learning_rate": RATE_ENCODER, "batch": batch, "frozen": frozen}


def _changed(values: JsonDict, changes: RecipeFields) -> JsonDict:
    """Overrides fields; in parts such as the model, single fields are overridden."""
    changed = {**values, **changes}
    for name in ("model", "augmentation", "loss"):
        if name in values and name in changes:
            changed[name] = {**values[name], **changes[name]}
    return changed


def _side(scan: Scan) -> int:
    return int(statistics.median(min(image.size) for image in scan.images))


def _oblong(scan: Scan) -> bool:
    ratio = statistics.median(max(image.size) / min(image.size) for image in scan.images)
    return ratio > SQUARE
