"""Decides for a batch which images are turned, and by which angles.

It follows the rules of `decisions.decide` for single pictures; a test compares the two.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from radialbeams.defaults import Snap
from radialbeams.front.affine import with_gradient_of
from radialbeams.nn.angles import wrap
from radialbeams.nn.posterior import Posterior
from radialbeams.posterior import Thresholds

NEAR = math.radians(5)  # how close to a quarter turn counts as one; equal to `decisions.NEAR`
PLAIN = 24 / 255  # by how much the colour of filled corners may vary


class Reading(NamedTuple):
    """The estimates of a network for N images."""

    angle: Tensor  # (N,) radians in [0, 2π)
    confidence: Tensor  # (N,) probability that the angle is within 10°; NaN: unknown
    upright: Tensor  # (N,) probability that the image is upright as it is; 0 if not needed
    # (N,) each, for snapping: the most probable quarter turn 0 to 3, its probability, and the
    # probability that the rotation is an exact multiple of 90°.
    quarter: Tensor | None = None
    quarter_sure: Tensor | None = None
    exact: Tensor | None = None


def decided(
    reading: Reading,
    as_estimated: Tensor,
    plain: Tensor,
    snap: Snap,
    least: Thresholds,
) -> tuple[Tensor, Tensor]:
    """(N,) each: the angles to undo, and for which images they are applied.

    `as_estimated` marks images that may be turned by the estimated angle. An image with `plain`
    corners may have any angle, and is turned by a quarter turn only if it is near one. The angle of
    an image that is left alone is the estimate.
    """
    quarter, probability, exact = reading.quarter, reading.quarter_sure, reading.exact
    if snap == "none" or quarter is None or probability is None or exact is None:
        return reading.angle, as_estimated
    straight = with_gradient_of(quarter * (math.pi / 2), reading.angle)
    sure = (probability >= least.quarter) & (quarter != 0)
    if snap == "90":
        return torch.where(sure, straight, reading.angle), sure
    near = (wrap(reading.angle - straight).abs() <= NEAR) & (quarter != 0)
    possible = exact >= least.exact  # a multiple of 90° is possible
    free = (plain & ~possible) | least.tilts
    tilted = as_estimated & free & ~near
    snapped = sure & (possible | (plain & near)) & ~tilted
    return torch.where(snapped, straight, reading.angle), tilted | snapped


def quarter_masses(posterior: Posterior) -> Tensor:
    """(N, 4): the mass nearest to 0°, 90°, 180° and 270°."""
    bins = posterior.angles.shape[-1]
    width = 360 / bins
    places = (torch.arange(bins, device=posterior.angles.device) * width + 45) % 360
    quarter, place = (places // 90).long(), places % 90
    below, above = (0.5 - place / width).clamp(0, 1), (0.5 - (90 - place) / width).clamp(0, 1)
    parts = ((0, 1 - below - above), (-1, below), (1, above))
    shares = torch.stack(
        [F.one_hot((quarter + step) % 4, 4) * part[:, None] for step, part in parts]
    )
    return posterior.log_probabilities.exp() @ shares.sum(0).to(posterior.log_probabilities.dtype)


def plain_corners(images: Tensor) -> Tensor:
    """(N, C, H, W) → (N,): whether the four corner pixels have nearly the same colour."""
    corners = images[..., [0, -1], :][..., [0, -1]].flatten(2)  # (N, C, 4)
    spread = corners.amax(-1) - corners.amin(-1)  # (N, C)
    return (spread <= PLAIN).all(-1)
