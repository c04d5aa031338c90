"""A model's answers for held-out views, computed once for the whole report."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from radialbeams.nn.angles import angular_error
from radialbeams.nn.architectures import Network, architecture
from radialbeams.nn.posterior import UPRIGHT, answer, confidence, mass_near, posterior
from radialbeams.posterior import Calibration
from radialbeams.training.data import ImageSet
from radialbeams.training.report.symmetry import moments
from radialbeams.training.views import Views, draw_angles

MOST_IMAGES = 2000  # more would not change the charts, and a report must not take minutes
BATCH = 128


class Chances(NamedTuple):
    """Probabilities from the posterior of each view, (seeds, N) each."""

    sure: Tensor  # the answer is within 10°
    upright: Tensor  # the view is upright
    truth: Tensor  # mass near the true angle: what `upright` would be for the upright picture
    moments: Tensor  # complex (seeds, N, MOMENTS), relative to the true angle
    mass: Tensor  # (seeds, N, bins)


@dataclass(frozen=True)
class Answers:
    """Angles in degrees, (seeds, N), for the held-out images at `rows`."""

    rows: Tensor  # (N,)
    truth: Tensor
    answer: Tensor
    chances: Chances | None

    @property
    def error(self) -> Tensor:
        """(seeds, N) degrees in [0, 180]."""
        radians = angular_error(torch.deg2rad(self.answer), torch.deg2rad(self.truth))
        return torch.rad2deg(radians)


def evenly(count: int, most: int) -> Tensor:
    """At most `most` of `count` rows, evenly spaced."""
    shown = min(count, most)
    return torch.arange(shown) * count // max(shown, 1)


def held_out_answers(
    model: Network,
    images: ImageSet,
    views: Views,
    calibration: Calibration,
    *,
    seeds: int = 3,
    most: int = MOST_IMAGES,
    device: torch.device | None = None,
    on_batch: Callable[[int, int], None] | None = None,
) -> Answers:
    """The answers at the angles of `evaluate`, so that the report shows the measured views."""
    angles = torch.stack([draw_angles("evaluation", s, 0, len(images)) for s in range(seeds)])
    rows = evenly(len(images), most)
    return answers_at(
        model, images, views, calibration, rows, angles[:, rows], device=device, on_batch=on_batch
    )


@torch.inference_mode()
def answers_at(
    model: Network,
    images: ImageSet,
    views: Views,
    calibration: Calibration,
    rows: Tensor,  # (N,)
    angles: Tensor,  # (turns, N) radians
    *,
    device: torch.device | None = None,
    on_batch: Callable[[int, int], None] | None = None,
) -> Answers:
    """The answers for these images at each of their angles."""
    parts: list[tuple[Tensor, Chances | None]] = []
    for start in range(0, len(rows), BATCH):
        part = slice(start, start + BATCH)
        prepared = views.prepare(images.images[rows[part]].to(device))
        turned = [
            _answers(model, views.turn(prepared, turns), turns, calibration)
            for turns in angles[:, part]
        ]
        parts.append(_stacked(turned, torch.stack))
        if on_batch is not None:
            on_batch(min(part.stop, len(rows)) * len(angles), angles.numel())
    predicted, chances = _stacked(parts, lambda tensors: torch.cat(list(tensors), dim=1))
    return Answers(rows, torch.rad2deg(angles), torch.rad2deg(predicted), chances)


def _answers(
    model: Network, views: Tensor, angles: Tensor, calibration: Calibration
) -> tuple[Tensor, Chances | None]:
    """Radians (N,) for one batch of views, and their probabilities."""
    if architecture(model.config).reading == "unit":
        return model.angles(views).float().cpu(), None
    logits, offsets = (output.float().cpu() for output in model(views))
    read = posterior(logits, offsets, calibration.temperature)
    spread = math.radians(calibration.spread)
    return answer(read), Chances(
        sure=confidence(read, spread),
        upright=mass_near(read, torch.zeros_like(angles), UPRIGHT, spread),
        truth=mass_near(read, angles, UPRIGHT, spread),
        moments=moments(read, angles),
        mass=read.log_probabilities.exp(),
    )


def _stacked(
    parts: list[tuple[Tensor, Chances | None]], join: Callable[[list[Tensor]], Tensor]
) -> tuple[Tensor, Chances | None]:
    chances = [part for _, part in parts if part is not None]
    joined = (
        Chances(*(join(list(columns)) for columns in zip(*chances, strict=True)))
        if chances
        else None
    )
    return join([angles for angles, _ in parts]), joined
