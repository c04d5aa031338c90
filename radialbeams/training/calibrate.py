"""Calibration: two numbers, so that a confidence of 0.9 is right nine times in ten.

The temperature says how much too sure the logits are; the spread, in degrees, how far a beam's own
answer may be off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from radialbeams.nn.angles import angular_error
from radialbeams.nn.architectures import Network
from radialbeams.nn.posterior import WITHIN, answer, confidence, posterior
from radialbeams.posterior import Calibration
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import expected_calibration_error
from radialbeams.training.views import Views, draw_angles

# From 1 up: below it, a model that is nearly always right would call itself certain of everything
# and could no longer tell which pictures it is least sure of.
TEMPERATURES = torch.logspace(0, 0.7, 29).tolist()  # to 5
SPREADS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0)
SEED = 1000  # of angles that no evaluation draws


class Outputs(NamedTuple):
    """What a network returns for held-out views, every image once for each seed."""

    logits: Tensor  # (N, |B|)
    offsets: Tensor  # (N, |B|)
    angles: Tensor  # (N,) radians that the views are turned by


def calibrate(
    model: Network,
    images: ImageSet,
    views: Views,
    *,
    in_first: Callable[[int], bool],
    seeds: int = 3,
) -> tuple[Calibration, float]:
    """Temperature and spread from held-out images, and the calibration error to expect of them.

    That error is measured crosswise: each half of the images, `in_first` says which, with the
    calibration that was fitted on the other.
    """
    first = [in_first(i) for i in range(len(images))]
    found = outputs(model, images, views, seeds)
    return fitted(found), crosswise_error(found, halves(found, first * seeds))


class Half(NamedTuple):
    """One half of the outputs, and the calibration that was fitted on the other."""

    mine: Tensor  # (N,) bool
    calibration: Calibration


def fitted(found: Outputs) -> Calibration:
    """Temperature and spread from outputs."""
    temperature, spread = best(found.logits, found.offsets, _right(found))
    return Calibration(round(temperature, 4), spread)


def halves(found: Outputs, first: Sequence[bool]) -> tuple[Half, Half]:
    """`first` says of each output whether it is in the first half."""
    half = torch.tensor(first)
    return Half(half, fitted(part_of(found, ~half))), Half(~half, fitted(part_of(found, half)))


def part_of(found: Outputs, chosen: Tensor) -> Outputs:
    """The outputs that are chosen by (N,) bool."""
    return Outputs(*(values[chosen] for values in found))


@torch.inference_mode()
def crosswise_error(found: Outputs, halves: Sequence[Half]) -> float:
    """The calibration error where each half has the calibration of the other."""
    sure = torch.empty(len(found.angles))
    for mine, calibration in halves:
        sure[mine] = _sure(found.logits[mine], found.offsets[mine], *calibration)
    return expected_calibration_error(_right(found), sure)


def _right(found: Outputs) -> Tensor:
    """(N,) bool: whether the answer is within 10°."""
    logits, offsets, angles = found
    return angular_error(answer(posterior(logits, offsets)), angles) <= WITHIN


def best(logits: Tensor, offsets: Tensor, right: Tensor) -> tuple[float, float]:
    """Whose confidences best foretell which answers are within 10°.

    By the log-loss, which is least where the confidences are the true chances.
    """
    losses = {
        pair: _log_loss(_sure(logits, offsets, *pair), right)
        for pair in product(TEMPERATURES, SPREADS)
    }
    return min(losses, key=lambda pair: losses[pair])


@torch.inference_mode()
def outputs(model: Network, images: ImageSet, views: Views, seeds: int) -> Outputs:
    """In memory, computed on the model's device."""
    device = next(model.parameters()).device
    found: list[tuple[Tensor, Tensor]] = []
    drawn = []
    for seed in range(seeds):
        angles = draw_angles("evaluation", SEED + seed, 0, len(images))
        drawn.append(angles)
        for start in range(0, len(images), 128):
            part = slice(start, start + 128)
            rendered = views.render(images.images[part].to(device), angles[part].to(device))
            found.append(model(rendered))
    logits, offsets = (torch.cat(parts).cpu() for parts in zip(*found, strict=True))
    return Outputs(logits, offsets, torch.cat(drawn))


def _sure(logits: Tensor, offsets: Tensor, temperature: float, spread: float) -> Tensor:
    return confidence(posterior(logits, offsets, temperature), math.radians(spread))


def _log_loss(sure: Tensor, right: Tensor) -> float:
    sure = sure.clamp(1e-6, 1 - 1e-6)
    return -torch.where(right, sure.log(), (1 - sure).log()).mean().item()
