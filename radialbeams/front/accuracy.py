"""Accuracy of a classifier over the rotation angle, with several methods of turning images upright.

All methods get the same rotated images, and their outputs are masked, cropped and resampled alike.
So is the upper bound ("ceiling"), which rotates images back by the true angle.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from radialbeams.front.module import TorchCanonicalizer
from radialbeams.front.pose import Pose
from radialbeams.nn.angles import angular_error
from radialbeams.stored import JsonDict, JsonFields

BATCH = 32
TURNS = 6  # number of rotations in test-time averaging
# The methods, in the order of reports.
LINES = ("plain", "averaged", "bic", "ring", "abstain", "ceiling")


@dataclass(frozen=True)
class AngleEstimates:
    """The estimates of a canonicaliser for N images."""

    angle: Tensor  # (N,) radians
    applied: Tensor  # (N,) bool; False: left alone, because it is unsure or nearly upright


Finder = Callable[[Tensor], AngleEstimates]


@dataclass(frozen=True)
class ClassificationTask:
    """Images to rotate, the classifier, and the canonicalisers to compare."""

    name: str
    labels: Tensor  # (N,)
    turned: Callable[[Tensor, Tensor], Tensor]  # rows and radians (n,) → images (n, 3, S, S)
    shown: Callable[[Tensor], Tensor]  # such images → input of the classifier: masked, cropped
    classify: Callable[[Tensor], Tensor]  # → scores (n, K)
    finders: Mapping[str, Finder]
    fill: float  # value outside a rotated image


Task = ClassificationTask  # the name that the documents of earlier versions use


@dataclass
class Tally:
    """The predictions for some images, each rotated by one angle."""

    labels: Tensor  # (n,)
    angles: Tensor  # (n,) radians
    probabilities: Tensor  # (n, K): for the rotated images as they are
    predicted: dict[str, Tensor]  # (n,) by method
    estimates: dict[str, AngleEstimates]
    seconds: dict[str, float]  # by part

    def accuracy(self, line: str, where: Tensor | None = None) -> float:
        right = (self.predicted[line] == self.labels).float()
        return (right if where is None else right[where]).mean().item()

    def accuracies(self) -> dict[str, float]:
        others = tuple(name for name in self.estimates if name not in LINES)
        lines = (*LINES[:4], *others, *LINES[4:])
        return {line: self.accuracy(line) for line in lines if line in self.predicted}

    def errors(self) -> dict[str, dict[str, float]]:
        """The errors of each canonicaliser in degrees, and the share of images it left alone."""
        rows = {}
        for name, estimates in self.estimates.items():
            error = torch.rad2deg(angular_error(estimates.angle, self.angles))
            rows[name] = {
                "mean": error.mean().item(),
                "median": error.median().item(),
                "within_10": (error <= 10).float().mean().item(),
                "left_alone": 1 - estimates.applied.float().mean().item(),
            }
        return rows

    def milliseconds(self) -> dict[str, float]:
        return {name: 1e3 * spent / len(self.labels) for name, spent in self.seconds.items()}


@torch.inference_mode()
def tally(
    task: ClassificationTask,
    rows: Tensor,
    angles: Tensor,
    *,
    averaged: bool = False,
    show: Callable[[int], object] | None = None,
) -> Tally:
    """Evaluates all methods on one angle per row; `averaged` adds test-time averaging."""
    parts = []
    for start in range(0, len(rows), BATCH):
        part = slice(start, start + BATCH)
        parts.append(_tally_batch(task, rows[part], angles[part], averaged))
        if show is not None:
            show(min(start + BATCH, len(rows)))
    return _joined(parts)


def _tally_batch(task: ClassificationTask, rows: Tensor, angles: Tensor, averaged: bool) -> Tally:
    images = task.turned(rows, angles)
    seconds = {"classifier": 0.0}

    def classified(batch: Tensor) -> Tensor:
        inputs, started = task.shown(batch), time.perf_counter()
        scores = task.classify(inputs).softmax(-1)
        seconds["classifier"] += time.perf_counter() - started
        return scores

    plain = classified(images)
    seconds_of_one = seconds["classifier"]
    predicted, estimates = {"plain": plain.argmax(-1)}, {}
    for name, finder in task.finders.items():
        started = time.perf_counter()
        estimates[name] = finder(images)
        upright = turned_back(images, estimates[name].angle, task.fill)
        seconds[name] = time.perf_counter() - started
        predicted[name] = classified(upright).argmax(-1)
    # The line "abstain" is that of the ring, or of the only canonicaliser.
    decider = next(iter(estimates)) if len(estimates) == 1 else "ring"
    if decider in estimates:
        predicted["abstain"] = torch.where(
            estimates[decider].applied, predicted[decider], predicted["plain"]
        )
    predicted["ceiling"] = classified(turned_back(images, angles, task.fill)).argmax(-1)
    if averaged:
        turns = [torch.full_like(angles, turn * 2 * math.pi / TURNS) for turn in range(1, TURNS)]
        rotated = [classified(turned_back(images, turn, task.fill)) for turn in turns]
        predicted["averaged"] = (plain + sum(rotated)).argmax(-1)
    seconds["classifier"] = seconds_of_one  # the cost of one run of the classifier
    return Tally(task.labels[rows], angles, plain, predicted, estimates, seconds)


def turned_back(images: Tensor, angles: Tensor, fill: float) -> Tensor:
    """The images rotated by −angle, on the same canvas."""
    size = (images.shape[-2], images.shape[-1])
    return Pose.from_angles(angles, size).apply_images(images, fill)


def _joined(parts: list[Tally]) -> Tally:
    first = parts[0]

    def cat(name: str) -> Tensor:
        return torch.cat([getattr(part, name) for part in parts])

    return Tally(
        cat("labels"),
        cat("angles"),
        cat("probabilities"),
        {line: torch.cat([p.predicted[line] for p in parts]) for line in first.predicted},
        {
            name: AngleEstimates(
                torch.cat([p.estimates[name].angle for p in parts]),
                torch.cat([p.estimates[name].applied for p in parts]),
            )
            for name in first.estimates
        },
        {name: sum(part.seconds[name] for part in parts) for name in first.seconds},
    )


def average_over_the_grid(tallies: list[Tally]) -> None:
    """Adds test-time averaging, given the tallies of all angles of an even grid.

    Rotating a rotated image again gives another angle of the grid, so nothing is classified again.
    No image is resampled twice, which favours averaging.
    """
    if len(tallies) % TURNS:
        raise ValueError(
            f"Averaging over {TURNS} turns needs a grid of a multiple of {TURNS} angles; got "
            f"{len(tallies)}."
        )
    step = len(tallies) // TURNS
    for number, tally in enumerate(tallies):
        rotated = [tallies[(number + k * step) % len(tallies)] for k in range(TURNS)]
        tally.predicted["averaged"] = sum(turned.probabilities for turned in rotated).argmax(-1)  # type: ignore[union-attr]


def lost_upright(upright: Tally) -> dict[str, float]:
    """The share of upright images that only the plain classifier gets right, by method."""
    right = upright.predicted["plain"] == upright.labels
    return {
        line: (right & (upright.predicted[line] != upright.labels)).float().mean().item()
        for line in ("ring", "abstain")
    }


def share_of_the_gap(accuracies: Mapping[str, float], line: str) -> float | None:
    """The share of the accuracy lost by rotation that a method recovers; 1 is the ceiling.

    None if rotation costs no accuracy.
    """
    gap = accuracies["ceiling"] - accuracies["plain"]
    return (accuracies[line] - accuracies["plain"]) / gap if gap > 0 else None


# --- canonicalisers ---


def finder(front: TorchCanonicalizer, device: torch.device, side: int | None = None) -> Finder:
    """The estimates of a module; `side` is that of the object's square in the image centre."""
    front = front.to(device)

    def find(images: Tensor) -> AngleEstimates:
        images = images.to(device)
        if side is None:
            pose = front.pose(front.network(front.view_geometry(images)), images)
        else:
            pose = front.crops(images, _middle_boxes(images, side), margin=0, size=8)[1]
        return AngleEstimates(pose.angle.cpu(), pose.applied.cpu())

    return find


def _middle_boxes(images: Tensor, side: int) -> Tensor:
    """(N, 5): boxes in the format of `crops`."""
    count, middle = images.shape[0], (images.shape[-1] - 1) / 2
    box = images.new_tensor([middle - side / 2] * 2 + [middle + side / 2] * 2)
    numbers = torch.arange(count, device=images.device, dtype=images.dtype)[:, None]
    return torch.cat((numbers, box.expand(count, -1)), dim=1)


# --- a classifier for other classes ---


def fit_head(
    scores: Tensor, labels: Tensor, *, steps: int = 400, decay: float = 1e-3
) -> Callable[[Tensor], Tensor]:
    """A linear layer on a classifier's scores (N, K), fitted to other labels (N,).

    It uses the scores and not inner features, so that any classifier works, even one in a file.
    """
    mean, deviation = scores.mean(0), scores.std(0).clamp(min=1e-6)
    standardised = (scores - mean) / deviation
    layer = torch.nn.Linear(scores.shape[1], int(labels.max()) + 1)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    optimizer = torch.optim.Adam(layer.parameters(), 1e-2, weight_decay=decay)
    for _ in range(steps):
        loss = torch.nn.functional.cross_entropy(layer(standardised), labels)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    layer.requires_grad_(False)

    def head(features: Tensor) -> Tensor:
        out: Tensor = layer((features - mean) / deviation)
        return out

    return head


def rounded(values: JsonFields, digits: int = 4) -> JsonDict:
    return {
        key: rounded(value, digits)
        if isinstance(value, Mapping)
        else round(value, digits)
        if isinstance(value, float)
        else value
        for key, value in values.items()
    }
