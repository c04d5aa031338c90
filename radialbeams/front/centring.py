"""Centring: where the object is in images that come without boxes, by moments of what stands out.

    boxes = centred_boxes(images)  # (N, 5), as a detector would give them
    upright, pose = canonicalizer.crops(images, boxes, margin=0)

Beams start in the middle of what they are laid over. An object beside the middle is seen from a
point beside its own, and no turn about the one is a turn about the other.

The centre of mass turns with the image, which the middle of an upright bounding box does not.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor

from radialbeams.front.sampling import check_batch

By = Literal["foreground", "saliency"]

STANDS_OUT = 0.1  # of the range of colours: pixels as far from the ground count more than half
NOTHING = 1e-6  # as a share of the pixels: less than this stands out nowhere


def centred_boxes(images: Tensor, *, side: float | None = None, by: By = "foreground") -> Tensor:
    """(N, C, H, W) in [0, 1] → (N, 5): the image's number, then x₀, y₀, x₁, y₁ of its square.

    The square lies around the centre of mass, and may reach beyond the image. Its side is the
    image's shorter one unless `side`, in pixels, says another.
    """
    check_batch(images)
    if side is not None and not 0 < side < math.inf:  # also refuses NaN
        raise ValueError(
            f"side is the length of a square in pixels, more than 0; got {side!r}. Leave it out "
            "for the image's shorter side."
        )
    centre = centre_of_mass(weights(images, by))  # (N, 2)
    half = (min(images.shape[-2:]) if side is None else side) / 2
    number = torch.arange(images.shape[0], device=images.device, dtype=centre.dtype)
    return torch.cat((number[:, None], centre - half, centre + half), dim=1)


def weights(images: Tensor, by: By = "foreground") -> Tensor:
    """(N, C, H, W) → (N, H, W) in [0, 1): how far each pixel stands out.

    `foreground`: from the colour of the border, for single objects on a plain ground. `saliency`:
    from the mean colour of the image, which asks nothing of the border.
    """
    if by not in get_args(By):
        raise ValueError(f"by must be one of {', '.join(get_args(By))}; got {by!r}.")
    images = images.float()
    ground = border_colour(images) if by == "foreground" else images.mean((-2, -1))
    apart = (images - ground[..., None, None]).square().mean(1)  # (N, H, W)
    return 1 - torch.exp(-apart / STANDS_OUT**2)


def border_colour(images: Tensor) -> Tensor:
    """(N, C, H, W) → (N, C): the median of the outermost pixels, so what touches it may differ."""
    ends = (images[..., 0, :], images[..., -1, :], images[..., :, 0], images[..., :, -1])
    return torch.cat(ends, dim=-1).median(-1).values


def centre_of_mass(mass: Tensor) -> Tensor:
    """(N, H, W) → (N, 2) as x, y; the middle of the image where there is no mass."""
    height, width = mass.shape[-2:]
    x = torch.arange(width, device=mass.device) - (width - 1) / 2
    y = torch.arange(height, device=mass.device) - (height - 1) / 2
    # A little in every pixel pulls to the middle, and decides where nothing else does.
    mass = mass + NOTHING
    whole = mass.sum((-2, -1))
    offset = torch.stack(((mass.sum(-2) * x).sum(-1), (mass.sum(-1) * y).sum(-1)), dim=-1)
    return offset / whole[:, None] + mass.new_tensor(((width - 1) / 2, (height - 1) / 2))
