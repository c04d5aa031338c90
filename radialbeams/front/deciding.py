"""What a network says of a batch, and which images are turned by which angles.

As `decisions.decide` has it for single pictures; a test compares the two.
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

NEAR = math.radians(5)  # of a quarter turn; `decisions.NEAR` is the same
PLAIN = 24 / 255  # levels by which the colour of filled corners varies


class Reading(NamedTuple):
    """What a network says of N images."""

    angle: Tensor  # (N,) radians in [0, 2π)
    confidence: Tensor  # (N,) chance that the angle is within 10°; NaN: none is known
    upright: Tensor  # (N,) chance that the image is upright as it is; 0 where nobody asks for it
    # (N,) each, for snapping: the likeliest quarter turn 0 to 3, its chance, and the chance that
    # the turn is an exact quarter, or none.
    quarter: Tensor | None = None
    quarter_sure: Tensor | None = None
    exact: Tensor | None = None


def decided(
    found: Reading,
    as_estimated: Tensor,
    plain: Tensor,
    snap: Snap,
    least: Thresholds,
) -> tuple[Tensor, Tensor]:
    """(N,) each: the angles that are undone, and for which images they are.

    `as_estimated` are those that may be turned by the network's own angle. Where the corners are
    `plain` an image may lie at any angle, and is turned by a quarter only where it is near one.
    The angle of an image that is left alone stays as it is.
    """
    quarter, chance, exact = found.quarter, found.quarter_sure, found.exact
    if snap == "none" or quarter is None or chance is None or exact is None:
        return found.angle, as_estimated
    straight = with_gradient_of(quarter * (math.pi / 2), found.angle)
    sure = (chance >= least.quarter) & (quarter != 0)
    if snap == "90":
        return torch.where(sure, straight, found.angle), sure
    near = (wrap(found.angle - straight).abs() <= NEAR) & (quarter != 0)
    possible = exact >= least.exact  # an exact quarter turn, or none
    free = (plain & ~possible) | least.tilts
    tilted = as_estimated & free & ~near
    snapped = sure & (possible | (plain & near)) & ~tilted
    return torch.where(snapped, straight, found.angle), tilted | snapped


def quarter_masses(found: Posterior) -> Tensor:
    """(N, 4): the mass nearest to upright and to each further quarter turn."""
    bins = found.angles.shape[-1]
    width = 360 / bins
    places = (torch.arange(bins, device=found.angles.device) * width + 45) % 360
    quarter, place = (places // 90).long(), places % 90
    below, above = (0.5 - place / width).clamp(0, 1), (0.5 - (90 - place) / width).clamp(0, 1)
    parts = ((0, 1 - below - above), (-1, below), (1, above))
    shares = torch.stack(
        [F.one_hot((quarter + step) % 4, 4) * part[:, None] for step, part in parts]
    )
    return found.log_probabilities.exp() @ shares.sum(0).to(found.log_probabilities.dtype)


def plain_corners(images: Tensor) -> Tensor:
    """(N, C, H, W) → (N,): whether the four corners have nearly one colour, as filled ones have."""
    corners = images[..., [0, -1], :][..., [0, -1]].flatten(2)  # (N, C, 4)
    spread = corners.amax(-1) - corners.amin(-1)  # (N, C)
    return (spread <= PLAIN).all(-1)
