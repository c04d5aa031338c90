"""Finds the object in images that come without boxes, by its centre of mass.

    boxes = centred_boxes(images)  # (N, 5), in the format of a detector
    upright, pose = canonicalizer.crops(images, boxes, margin=0)

Beams start in the middle of the image. If the object lies elsewhere, a rotation of the object is
not a rotation of the image about the middle of the beams.

The centre of mass rotates with the image; the middle of an axis-aligned bounding box does not.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor

from radialbeams.front.sampling import check_batch

By = Literal["foreground", "saliency"]

STANDS_OUT = 0.1  # distance from the background, as a share of the range, with weight 1 − 1/e
NOTHING = 1e-6  # weight added to every pixel


def centred_boxes(images: Tensor, *, side: float | None = None, by: By = "foreground") -> Tensor:
    """(N, C, H, W) in [0, 1] → (N, 5): the index of the image, then x₀, y₀, x₁, y₁ of a square.

    The square is centred on the centre of mass, and may extend beyond the image. `side` is in
    pixels; its default is the shorter side of the image.
    """
    check_batch(images)
    if side is not None and not 0 < side < math.inf:  # also refuses NaN
        raise ValueError(
            f"side must be a number of pixels above 0; got {side!r}. Leave it out to use the "
            "shorter side of the image."
        )
    centre = centre_of_mass(weights(images, by))  # (N, 2)
    half = (min(images.shape[-2:]) if side is None else side) / 2
    number = torch.arange(images.shape[0], device=images.device, dtype=centre.dtype)
    return torch.cat((number[:, None], centre - half, centre + half), dim=1)


def weights(images: Tensor, by: By = "foreground") -> Tensor:
    """(N, C, H, W) → (N, H, W) in [0, 1): how much each pixel stands out.

    `foreground`: from the colour of the border, for single objects on a plain background.
    `saliency`: from the mean colour of the image, which makes no assumption about the border.
    """
    if by not in get_args(By):
        raise ValueError(f"by must be one of {', '.join(get_args(By))}; got {by!r}.")
    images = images.float()
    ground = border_colour(images) if by == "foreground" else images.mean((-2, -1))
    apart = (images - ground[..., None, None]).square().mean(1)  # (N, H, W)
    return 1 - torch.exp(-apart / STANDS_OUT**2)


def border_colour(images: Tensor) -> Tensor:
    """(N, C, H, W) → (N, C): the median of the outermost pixels, so an object may touch them."""
    ends = (images[..., 0, :], images[..., -1, :], images[..., :, 0], images[..., :, -1])
    return torch.cat(ends, dim=-1).median(-1).values


def centre_of_mass(mass: Tensor) -> Tensor:
    """(N, H, W) → (N, 2) as x, y; the middle of the image if there is no mass."""
    height, width = mass.shape[-2:]
    x = torch.arange(width, device=mass.device) - (width - 1) / 2
    y = torch.arange(height, device=mass.device) - (height - 1) / 2
    # A little mass in every pixel gives the middle of the image if there is no other mass.
    mass = mass + NOTHING
    total = mass.sum((-2, -1))
    offset = torch.stack(((mass.sum(-2) * x).sum(-1), (mass.sum(-1) * y).sum(-1)), dim=-1)
    return offset / total[:, None] + mass.new_tensor(((width - 1) / 2, (height - 1) / 2))
