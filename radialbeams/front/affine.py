"""Affine maps of points, (N, 2, 3): rotation about a middle, inversion, and the corners of boxes.

Conventions as in `pose`: (x, y) in pixel indices, rows downwards, radians counter-clockwise.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from radialbeams.nn.exporting import is_exporting

Size = tuple[int, int]  # height, width
# The canvas of the upright image: that of the original, or one that holds it at any angle.
Canvas = Literal["same", "expand"]

# A smaller sine or cosine counts as 0: float32 represents 2π to about 5e-7.
QUARTER_TOLERANCE = 1e-6
# In pixels: half-way between two pixels, the later one is the nearest, despite rounding errors.
TIE = 1e-3


def middle(size: Size) -> tuple[float, float]:
    """(x, y) of the middle of an image."""
    return (size[1] - 1) / 2, (size[0] - 1) / 2


def canvas_size(size: Size, canvas: Canvas) -> Size:
    """The size of the upright image; the same for all angles, so that a batch has one size."""
    if canvas == "same":
        return size
    if canvas != "expand":
        raise ValueError(f"canvas must be one of {', '.join(get_args(Canvas))}; got {canvas!r}.")
    diagonal = math.ceil(math.hypot(*size))
    # Odd stays odd and even stays even, so that an image that is not turned stays on whole pixels.
    height, width = (diagonal + (diagonal - side) % 2 for side in size)
    return height, width


def turned_back(
    angles: Tensor,
    before: tuple[float | Tensor, float | Tensor],
    after: tuple[float, float],
    scale: Tensor | None = None,
) -> Tensor:
    """(N,) → (N, 2, 3): rotates by −angle about the point `before`, which is mapped to `after`."""
    right = cosine_and_sine(angles)  # (N, 2): the image of a step to the right
    if scale is not None:
        right = scale[..., None] * right
    cos, sin = right.unbind(-1)
    below = torch.stack((-sin, cos), dim=-1)  # (N, 2): the image of a step downwards
    (x, y), (u, v) = before, after
    shift = -(_each(x) * right) - _each(y) * below  # (N, 2)
    if is_square(u, v):
        shift = shift + u
    else:
        shift = torch.stack((shift[..., 0] + u, shift[..., 1] + v), dim=-1)
    return torch.stack((right, below, shift), dim=-1)


def is_square(height: float, width: float) -> bool:
    """Whether both axes can be handled in one operation, which saves kernel launches on a GPU.

    False when compiling: a compiler fuses them anyway, and would need a graph for each case.
    """
    return not torch.compiler.is_compiling() and height == width


def _each(number: float | Tensor) -> float | Tensor:
    """A number for all items, or a tensor (N,) of one each, as (N, 1)."""
    return number[..., None] if isinstance(number, Tensor) else number


def on_whole_pixels(transform: Tensor) -> Tensor:
    """(N, 2, 3) → (N, 2, 3): rounds the shifts of quarter turns to whole pixels.

    If one side of an image is odd and the other even, a quarter turn about the middle falls between
    the pixels. A rotation about a point half a pixel away only moves pixels; the pose records it.
    """
    grid, shift = transform[..., :2], transform[..., 2:]
    quarter = (grid == grid.round()).flatten(1).all(1)[:, None, None]
    whole = with_gradient_of((shift + (0.5 + TIE)).floor(), shift)
    return torch.cat((grid, torch.where(quarter, whole, shift)), dim=-1)


def cosine_and_sine(angles: Tensor) -> Tensor:
    """(N,) → (N, 2): cosine and sine, exact at multiples of 90°; the gradients are unchanged."""
    if is_exporting():  # next to a quarter turn, float32 has the other one as ±1
        column = angles[:, None]
        unit = torch.cat((torch.cos(column), torch.sin(column)), dim=-1)
        return F.hardshrink(unit, QUARTER_TOLERANCE)
    unit = torch.stack((torch.cos(angles), torch.sin(angles)), dim=-1)
    quarter = unit.abs().amin(-1, keepdim=True) < QUARTER_TOLERANCE
    return torch.where(quarter, with_gradient_of(unit.round(), unit), unit)


def inverted(transform: Tensor) -> Tensor:
    """(N, 2, 3) → (N, 2, 3): the inverse maps."""
    turn, shift = transform[..., :2], transform[..., 2]  # (N, 2, 2), (N, 2)
    (a, b), (c, d) = (row.unbind(-1) for row in turn.unbind(-2))
    adjoint = torch.stack((d, -b, -c, a), dim=-1) / (a * d - b * c)[..., None]
    back = adjoint.reshape_as(turn)
    return torch.cat((back, -(back * shift[..., None, :]).sum(-1, keepdim=True)), dim=-1)


def moved(points: Tensor, transform: Tensor) -> Tensor:
    """(N, …, 2), (N, 2, 3) → (N, …, 2): the points under the maps."""
    return moved_xy(points[..., :1], points[..., 1:], transform)


def moved_xy(x: Tensor, y: Tensor, transform: Tensor) -> Tensor:
    """(N, …, 1) each → (N, …, 2): the same for x and y that broadcast, in two passes."""
    # Not as a matrix product: under autocast, its rounding errors would be whole pixels.
    columns = transform.mT.reshape(-1, 3, *(1 for _ in x.shape[1:-1]), 2)  # (N, 3, …, 2)
    a, b, shift = columns.unbind(1)
    return torch.addcmul(torch.addcmul(shift, a, x), b, y)


def corners(boxes: Tensor) -> Tensor:
    """(…, 4) as x₀, y₀, x₁, y₁ → (…, 4, 2), clockwise from the upper left."""
    return boxes[..., [0, 1, 2, 1, 2, 3, 0, 3]].reshape(*boxes.shape[:-1], 4, 2)


def enclosed(points: Tensor) -> Tensor:
    """(…, K, 2) → (…, 4): the smallest upright box around them."""
    return torch.cat((points.amin(-2), points.amax(-2)), dim=-1)


def with_gradient_of(values: Tensor, smooth: Tensor) -> Tensor:
    return values.detach() + (smooth - smooth.detach()) if smooth.requires_grad else values
