"""Rotate, pad: the one place that fixes centre, sign and interpolation.

Convention, for every function here and everywhere else in the project:

- images are (N, C, W, W), rows downwards;
- angles are radians, positive = counter-clockwise *as displayed*, one per image;
- the centre is the pixel index (W − 1)/2, so a quarter turn maps pixels onto pixels for even and
  odd W alike, and `rotate(x, π/2)` is `torch.rot90(x, 1, (-2, -1))`.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Padding = Literal["zeros", "corner"]
# The padding that the paper starts from, and its adaptive one that removes the border.
PADDINGS: tuple[Padding, ...] = ("zeros", "corner")

# An angle this close to a multiple of 90° is that multiple: float32 holds 2π to about 5e-7.
QUARTER_TOLERANCE = 1e-6


def pad(images: Tensor, width: int, padding: Padding = "zeros") -> Tensor:
    """(N, C, W, W) → (N, C, W + 2·width, W + 2·width), filled with 0 or the image's own corner."""
    return _surround(images, _fill(images, padding), width)


def rotate(
    images: Tensor, angles: Tensor | float, *, width: int = 0, padding: Padding = "zeros"
) -> Tensor:
    """Turns each image counter-clockwise by its angle, bilinearly; outside lies the fill.

    With `width` it equals `rotate(pad(images, width), angles)` in one resample instead of two
    passes. Multiples of 90° are exact: they only move pixels.
    """
    _check_square(images)
    turns = torch.as_tensor(angles, dtype=torch.float32).expand(len(images))
    fill = _fill(images, padding)
    out = F.grid_sample(
        images - fill,
        _rotation_grid(turns.to(images.device), images.shape[-1], width).to(images.dtype),
        mode="bilinear",
        padding_mode="zeros",
        align_corners=True,
    )
    return _exact_quarters(images, out + fill, turns, fill, width)


def _rotation_grid(angles: Tensor, size: int, width: int) -> Tensor:
    """Where each output pixel comes from: (N,) → (N, S, S, 2), S = size + 2·width.

    `grid_sample` wants the output-to-input map, so this is the *inverse* turn; y points down.
    """
    centre = (size - 1) / 2
    # With align_corners, ±1 are the centres of the outermost pixels: index offset / centre.
    scale = max(centre, 0.5)
    offsets = (torch.arange(size + 2 * width, device=angles.device) - centre - width) / scale
    y, x = torch.meshgrid(offsets, offsets, indexing="ij")
    cos, sin = torch.cos(angles)[:, None, None], torch.sin(angles)[:, None, None]
    return torch.stack((x * cos - y * sin, x * sin + y * cos), dim=-1)


def _exact_quarters(
    images: Tensor, out: Tensor, angles: Tensor, fill: Tensor, width: int
) -> Tensor:
    """Puts the pixels themselves where interpolation would only have come close."""
    quarters = angles / (math.pi / 2)
    nearest = torch.round(quarters)
    exact = (quarters - nearest).abs() < QUARTER_TOLERANCE
    fill = fill.expand(len(images), -1, 1, 1)
    for k in torch.unique(nearest[exact]).tolist():
        which = (exact & (nearest == k)).nonzero().squeeze(1).to(images.device)
        turned = torch.rot90(images[which], int(k), (-2, -1))
        out[which] = _surround(turned, fill[which], width)
    return out


def _surround(images: Tensor, fill: Tensor, width: int) -> Tensor:
    """Lays the pixels on the fill as they are: subtracting and adding it back would round them."""
    count, channels, size, _ = images.shape
    canvas = fill.repeat(1, 1, size + 2 * width, size + 2 * width)
    canvas = canvas.expand(count, channels, -1, -1).contiguous()
    canvas[..., width : width + size, width : width + size] = images
    return canvas


def _fill(images: Tensor, padding: Padding) -> Tensor:
    """The colour outside, (N, C, 1, 1)."""
    if padding == "zeros":
        return images.new_zeros(1, 1, 1, 1)
    if padding == "corner":
        return images[..., :1, :1]
    raise ValueError(f"padding must be one of {', '.join(PADDINGS)}; got {padding!r}.")


def _check_square(images: Tensor) -> None:
    if images.ndim != 4 or images.shape[-1] != images.shape[-2]:
        raise ValueError(
            "rotate expects square images of shape (N, C, W, W); "
            f"got {tuple(images.shape)}. Crop or pad them to a square first."
        )
