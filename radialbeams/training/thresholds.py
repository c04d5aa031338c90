"""Abstention thresholds: when a model's answer is good enough to rotate a picture.

Most pictures are upright already, and turning an upright picture is the worst mistake. It happens
when the model is confident, its error exceeds the smallest angle that is acted on, and its
posterior gives little probability to upright. The last condition helps because a model that takes
an upright photo for a sideways one rarely rules out upright.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from radialbeams.nn.angles import angular_error
from radialbeams.nn.architectures import Network
from radialbeams.nn.posterior import UPRIGHT, WITHIN, answer, confidence, mass_near, posterior
from radialbeams.posterior import Calibration, Thresholds
from radialbeams.training.calibrate import Half, HeldOutOutputs, outputs, part_of
from radialbeams.training.data import ImageSet
from radialbeams.training.views import Views

SPOILT = 0.006  # largest share of upright pictures that may come out worse
RIGHT = 0.88  # least share of the pictures acted on that should end within NEAR
NEAR = 5.0  # degrees
# At least 0.5, since users' pictures may be of other kinds than the held-out ones.
CONFIDENCES = tuple(percent / 100 for percent in range(50, 100))
UPRIGHTS = (1.0, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.003, 0.001)
# With fewer images than ENOUGH, a single spoilt image exceeds SPOILT, and none proves little.
# Thresholds from few images are therefore stricter: a picture is acted on only if the posterior all
# but rules out that it is upright.
ENOUGH = math.ceil(1 / SPOILT)
CAREFUL = (0.003, 0.001)
# A larger smallest angle cannot help a model whose errors exceed what counts as correct.
LARGEST_ANGLE = math.degrees(WITHIN) + 0.5


class HeldOutAnswers(NamedTuple):
    """A model's answers for held-out views, each (N,)."""

    errors: Tensor  # degrees
    turned: Tensor  # degrees from upright, according to the answer
    sure: Tensor  # confidences
    upright: Tensor  # posterior probability that the view is upright
    truth: Tensor  # the same if the view were upright: the posterior at the true angle


def abstention(
    model: Network,
    images: ImageSet,
    views: Views,
    calibration: Calibration,
    *,
    seeds: int = 3,
) -> Thresholds:
    """The thresholds of a card, chosen on held-out images."""
    return abstention_of(outputs(model, images, views, seeds), calibration)


def abstention_of(
    outcome: HeldOutOutputs, calibration: Calibration, *, careful: bool = False
) -> Thresholds:
    """As `abstention`, from the outputs for held-out views; `careful` if there are few of them."""
    return thresholds(
        _held_out_answers(outcome, calibration), uprights=CAREFUL if careful else UPRIGHTS
    )


def worse_crosswise(
    outcome: HeldOutOutputs, halves: Sequence[Half], *, careful: bool = False
) -> float:
    """The share of upright views that thresholds from the other half make worse."""
    worse = torch.zeros(len(outcome.angles), dtype=torch.bool)
    for rows, calibration in halves:
        least = abstention_of(part_of(outcome, ~rows), calibration, careful=careful)
        worse[rows] = _worse(_held_out_answers(part_of(outcome, rows), calibration), least)
    return worse.float().mean().item()


def _worse(answers: HeldOutAnswers, least: Thresholds) -> Tensor:
    """(N,) bool: which views would be turned away from upright if they were upright."""
    sure = (answers.sure >= least.confidence) & (answers.truth <= least.upright)
    return sure & (answers.errors > least.angle)


def _held_out_answers(outcome: HeldOutOutputs, calibration: Calibration) -> HeldOutAnswers:
    logits, offsets, angles = outcome
    predicted = posterior(logits, offsets, calibration.temperature)
    spread = math.radians(calibration.spread)
    answers, upright = answer(predicted), torch.zeros_like(angles)
    return HeldOutAnswers(
        torch.rad2deg(angular_error(answers, angles)),
        torch.rad2deg(angular_error(answers, upright)),
        confidence(predicted, spread),
        mass_near(predicted, upright, UPRIGHT, spread),
        mass_near(predicted, angles, UPRIGHT, spread),
    )


def thresholds(
    answers: HeldOutAnswers,
    *,
    spoilt: float = SPOILT,
    right: float = RIGHT,
    uprights: Sequence[float] = UPRIGHTS,
) -> Thresholds:
    """The thresholds that act on the most pictures while spoiling few and being mostly right."""
    rows = [row for upright in uprights for row in _rows(answers, upright, spoilt)]
    if not rows:  # no answer of this model is good enough
        return Thresholds(1.0, LARGEST_ANGLE, min(UPRIGHTS))
    good = [row for row in rows if row.right >= right]
    best = max(good, key=lambda row: row.acted) if good else max(rows, key=lambda row: row.right)
    return best.thresholds


class _Row(NamedTuple):
    thresholds: Thresholds
    acted: float  # share of the rotated views that are acted on
    right: float  # share of those that end within NEAR


def _rows(answers: HeldOutAnswers, upright: float, share: float) -> list[_Row]:
    """One row per confidence, with the smallest angle that spoils no more than `share`."""
    allowed = int(share * len(answers.errors))
    rows = []
    for least in CONFIDENCES:
        spoilt = answers.errors[(answers.sure >= least) & (answers.truth <= upright)]
        angle = max(1.0, math.ceil(2 * _lowest(spoilt, allowed)) / 2)
        if angle > LARGEST_ANGLE:
            continue
        acted = (answers.sure >= least) & (answers.upright <= upright) & (answers.turned >= angle)
        if not acted.any():
            continue
        right = (answers.errors[acted] <= NEAR).float().mean().item()
        candidate = Thresholds(least, angle, upright)
        rows.append(_Row(candidate, acted.float().mean().item(), right))
    return rows


def _lowest(values: Tensor, allowed: int) -> float:
    """The threshold that at most `allowed` of the values exceed."""
    ranked = values.sort(descending=True).values
    return float(ranked[allowed]) if allowed < len(ranked) else 0.0
