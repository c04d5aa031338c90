"""Angles on the circle: wrapping, unit vectors, the circle loss, circular errors.

Convention: an angle is the rotation that an image has undergone, in radians, counter-clockwise as
displayed. Its unit vector is (re, im) = (cos, sin).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from radialbeams.nn.exporting import is_exporting

TURN = 2 * math.pi


def wrap(angles: Tensor) -> Tensor:
    """The same angles in [−π, π); applied to a difference, this is the shortest way round.

    In a file they are in [−π, π], in half of the operations.
    """
    if is_exporting():
        return angles - TURN * torch.round(angles / TURN)
    return _below(torch.remainder(angles + math.pi, TURN), TURN) - math.pi


def to_unit(angles: Tensor) -> Tensor:
    """(…) → (…, 2) as (re, im)."""
    return torch.stack((torch.cos(angles), torch.sin(angles)), dim=-1)


def from_unit(unit: Tensor) -> Tensor:
    """(…, 2) → (…) in [0, 2π); the length does not matter."""
    return positive(torch.atan2(unit[..., 1], unit[..., 0]))


def positive(angles: Tensor) -> Tensor:
    """The same angles in [0, 2π)."""
    return _below(torch.remainder(angles, TURN), TURN)


def _below(values: Tensor, end: float) -> Tensor:
    """Maps `end` to 0: the remainder of a tiny negative number rounds up to `end` itself."""
    return torch.where(values >= end, 0.0, values)


def circle_loss(angles: Tensor, unit: Tensor) -> Tensor:
    """The paper's L_circle, not yet averaged: (…), (…, 2) → (…); within [0, 4] for unit vectors.

    It is the squared chord between the two points on the circle, 2 − 2·cos of their distance. So
    it has no seam at 0°, and as a function of the angle its Lipschitz constant is 2.
    """
    return (to_unit(angles) - unit).square().sum(dim=-1)


def angular_error(predicted: Tensor, true: Tensor) -> Tensor:
    """The shortest way round between two angles, in [0, π]."""
    return wrap(predicted - true).abs()


def paper_equivalent(errors: Tensor) -> Tensor:
    """arccos(1 − mean(L_circle)/2): what the paper calls its error. It is not a mean of errors.

    Flips weigh far more than in the mean: if 1 % of the estimates are off by 180° and the others
    are perfect, it is 11.5°.
    """
    mean_loss = (2 - 2 * torch.cos(errors)).mean()
    return torch.arccos((1 - mean_loss / 2).clamp(-1, 1))
