"""Abstention: from where on a model's answers should be acted on.

Most pictures are upright already, and nothing annoys more than one that was and is not any more.
An upright picture comes out worse when the model is sure, wrong by more than the smallest turn that
is acted on, and sees little chance that the picture is upright as it is. The last is read from the
posterior: who takes an upright photo for one that lies on its side seldom rules out the truth.
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
from radialbeams.training.calibrate import Half, Outputs, outputs, part_of
from radialbeams.training.data import ImageSet
from radialbeams.training.views import Views

SPOILT = 0.006  # of upright pictures may come out worse
RIGHT = 0.88  # of those acted on should end within NEAR
NEAR = 5.0  # degrees
# Pictures of another kind are not among the held-out ones, so never on less than even chances.
CONFIDENCES = tuple(percent / 100 for percent in range(50, 100))
UPRIGHTS = (1.0, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.003, 0.001)
# Of fewer images than ENOUGH, one spoilt image is already too many, and none says little.
# Thresholds from them therefore ask for more: a picture is acted on only if the posterior all but
# rules out that it is upright. On faces and objects, thresholds from 24 images spoilt up to 14 % of
# new pictures without this, and up to 4 % with it; they acted on a twentieth less.
ENOUGH = math.ceil(1 / SPOILT)
CAREFUL = (0.003, 0.001)
# A model that is off by more than what counts as right is not to be saved by a larger angle.
LARGEST_ANGLE = math.degrees(WITHIN) + 0.5


class Seen(NamedTuple):
    """What a model says of held-out views, each (N,)."""

    errors: Tensor  # degrees
    turned: Tensor  # degrees away from upright, by the answer
    sure: Tensor  # confidences
    upright: Tensor  # chance that the view is upright as it is
    truth: Tensor  # the same if it were: the answer turns with the view


def abstention(
    model: Network,
    images: ImageSet,
    views: Views,
    calibration: Calibration,
    *,
    seeds: int = 3,
) -> Thresholds:
    """The thresholds of a card, from held-out images."""
    return abstention_of(outputs(model, images, views, seeds), calibration)


def abstention_of(
    outcome: Outputs, calibration: Calibration, *, careful: bool = False
) -> Thresholds:
    """The same from the outputs for views of these images; `careful` if there are few of them."""
    return thresholds(_seen(outcome, calibration), uprights=CAREFUL if careful else UPRIGHTS)


def worse_crosswise(outcome: Outputs, halves: Sequence[Half], *, careful: bool = False) -> float:
    """The share of upright views that are made worse by thresholds from the other half."""
    worse = torch.zeros(len(outcome.angles), dtype=torch.bool)
    for mine, calibration in halves:
        least = abstention_of(part_of(outcome, ~mine), calibration, careful=careful)
        worse[mine] = _worse(_seen(part_of(outcome, mine), calibration), least)
    return worse.float().mean().item()


def _worse(seen: Seen, least: Thresholds) -> Tensor:
    """(N,) bool: which views would be turned away from upright if they were upright."""
    sure = (seen.sure >= least.confidence) & (seen.truth <= least.upright)
    return sure & (seen.errors > least.angle)


def _seen(outcome: Outputs, calibration: Calibration) -> Seen:
    logits, offsets, angles = outcome
    found = posterior(logits, offsets, calibration.temperature)
    spread = math.radians(calibration.spread)
    answers, upright = answer(found), torch.zeros_like(angles)
    return Seen(
        torch.rad2deg(angular_error(answers, angles)),
        torch.rad2deg(angular_error(answers, upright)),
        confidence(found, spread),
        mass_near(found, upright, UPRIGHT, spread),
        mass_near(found, angles, UPRIGHT, spread),
    )


def thresholds(
    seen: Seen,
    *,
    spoilt: float = SPOILT,
    right: float = RIGHT,
    uprights: Sequence[float] = UPRIGHTS,
) -> Thresholds:
    """Those with which most is acted on, of all that spoil few and are mostly right."""
    rows = [row for upright in uprights for row in _rows(seen, upright, spoilt)]
    if not rows:  # nothing of this model should be acted on
        return Thresholds(1.0, LARGEST_ANGLE, min(UPRIGHTS))
    good = [row for row in rows if row.right >= right]
    best = max(good, key=lambda row: row.acted) if good else max(rows, key=lambda row: row.right)
    return best.thresholds


class _Row(NamedTuple):
    thresholds: Thresholds
    acted: float  # share of the turned views
    right: float  # share of those


def _rows(seen: Seen, upright: float, share: float) -> list[_Row]:
    """One for each confidence, with the smallest angle that spoils no more than it may."""
    allowed = int(share * len(seen.errors))
    rows = []
    for least in CONFIDENCES:
        spoilt = seen.errors[(seen.sure >= least) & (seen.truth <= upright)]
        angle = max(1.0, math.ceil(2 * _lowest(spoilt, allowed)) / 2)
        if angle > LARGEST_ANGLE:
            continue
        acted = (seen.sure >= least) & (seen.upright <= upright) & (seen.turned >= angle)
        if not acted.any():
            continue
        right = (seen.errors[acted] <= NEAR).float().mean().item()
        found = Thresholds(least, angle, upright)
        rows.append(_Row(found, acted.float().mean().item(), right))
    return rows


def _lowest(values: Tensor, allowed: int) -> float:
    """The threshold above which no more than `allowed` of the values lie."""
    ranked = values.sort(descending=True).values
    return float(ranked[allowed]) if allowed < len(ranked) else 0.0
