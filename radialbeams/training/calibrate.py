"""Calibration: two numbers that make answers with a confidence of 0.9 right nine times in ten.

The temperature corrects overconfident logits. The spread, in degrees, is the uncertainty of the
angle that each beam predicts.
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

# At least 1: a lower temperature would make a model that is nearly always right certain of every
# picture, and its confidences could no longer rank them.
TEMPERATURES = torch.logspace(0, 0.7, 29).tolist()  # to 5
SPREADS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0)
SEED = 1000  # evaluations draw their angles from other seeds


class HeldOutOutputs(NamedTuple):
    """A network's outputs for held-out views: every image once per seed."""

    logits: Tensor  # (N, |B|)
    offsets: Tensor  # (N, |B|)
    angles: Tensor  # (N,) radians by which the views are rotated


def calibrate(
    model: Network,
    images: ImageSet,
    views: Views,
    *,
    in_first: Callable[[int], bool],
    seeds: int = 3,
) -> tuple[Calibration, float]:
    """Temperature and spread fitted on held-out images, and the expected calibration error.

    The error is cross-validated: `in_first` splits the images into halves, and each half is
    measured with the calibration that was fitted on the other.
    """
    first = [in_first(i) for i in range(len(images))]
    stored = outputs(model, images, views, seeds)
    return fitted(stored), crosswise_error(stored, halves(stored, first * seeds))


class Half(NamedTuple):
    """One half of the outputs, and the calibration that was fitted on the other."""

    rows: Tensor  # (N,) bool
    calibration: Calibration


def fitted(stored: HeldOutOutputs) -> Calibration:
    """Temperature and spread, fitted on stored outputs."""
    temperature, spread = best(stored.logits, stored.offsets, _correct(stored))
    return Calibration(round(temperature, 4), spread)


def halves(stored: HeldOutOutputs, first: Sequence[bool]) -> tuple[Half, Half]:
    """Both halves of the outputs; `first` says which outputs are in the first."""
    half = torch.tensor(first)
    return Half(half, fitted(part_of(stored, ~half))), Half(~half, fitted(part_of(stored, half)))


def part_of(stored: HeldOutOutputs, chosen: Tensor) -> HeldOutOutputs:
    """The outputs at which `chosen` (N,) is true."""
    return HeldOutOutputs(*(values[chosen] for values in stored))


@torch.inference_mode()
def crosswise_error(stored: HeldOutOutputs, halves: Sequence[Half]) -> float:
    """The calibration error if each half is measured with the calibration of the other."""
    confidences = torch.empty(len(stored.angles))
    for rows, calibration in halves:
        confidences[rows] = _sure(stored.logits[rows], stored.offsets[rows], *calibration)
    return expected_calibration_error(_correct(stored), confidences)


def _correct(stored: HeldOutOutputs) -> Tensor:
    """(N,) bool: whether the answer is within 10°."""
    logits, offsets, angles = stored
    return angular_error(answer(posterior(logits, offsets)), angles) <= WITHIN


def best(logits: Tensor, offsets: Tensor, correct: Tensor) -> tuple[float, float]:
    """The temperature and spread whose confidences best predict which answers are within 10°.

    They minimise the log-loss, which is lowest when confidences equal the true probabilities.
    """
    losses = {
        pair: _log_loss(_sure(logits, offsets, *pair), correct)
        for pair in product(TEMPERATURES, SPREADS)
    }
    return min(losses, key=lambda pair: losses[pair])


@torch.inference_mode()
def outputs(model: Network, images: ImageSet, views: Views, seeds: int) -> HeldOutOutputs:
    """The model's outputs for every image at `seeds` random angles, in main memory."""
    device = next(model.parameters()).device
    results: list[tuple[Tensor, Tensor]] = []
    all_angles = []
    for seed in range(seeds):
        angles = draw_angles("evaluation", SEED + seed, 0, len(images))
        all_angles.append(angles)
        for start in range(0, len(images), 128):
            part = slice(start, start + 128)
            rendered = views.render(images.images[part].to(device), angles[part].to(device))
            results.append(model(rendered))
    logits, offsets = (torch.cat(parts).cpu() for parts in zip(*results, strict=True))
    return HeldOutOutputs(logits, offsets, torch.cat(all_angles))


def _sure(logits: Tensor, offsets: Tensor, temperature: float, spread: float) -> Tensor:
    return confidence(posterior(logits, offsets, temperature), math.radians(spread))


def _log_loss(confidences: Tensor, correct: Tensor) -> float:
    confidences = confidences.clamp(1e-6, 1 - 1e-6)
    return -torch.where(correct, confidences.log(), (1 - confidences).log()).mean().item()
