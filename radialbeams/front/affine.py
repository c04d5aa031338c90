"""Maps of points, (N, 2, 3) each: to turn about a middle, the way back, and boxes by corners.

Conventions as in `pose`: (x, y) in pixel indices, rows downwards, radians counter-clockwise.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor

Size = tuple[int, int]  # height, width
# The canvas of the upright image: that of the original, or one that holds it at any angle.
Canvas = Literal["same", "expand"]

# A sine or cosine this small is 0: float32 holds 2π to about 5e-7.
QUARTER_TOLERANCE = 1e-6
# Pixels: half-way between two, the later one is the nearest, whatever the last bits of a sum say.
TIE = 1e-3


def middle(size: Size) -> tuple[float, float]:
    """(x, y)."""
    return (size[1] - 1) / 2, (size[0] - 1) / 2


def canvas_size(size: Size, canvas: Canvas) -> Size:
    """The same for all angles, so that a batch stays a batch."""
    if canvas == "same":
        return size
    if canvas != "expand":
        raise ValueError(f"canvas must be one of {', '.join(get_args(Canvas))}; got {canvas!r}.")
    diagonal = math.ceil(math.hypot(*size))
    # Odd stays odd and even stays even: what is not turned falls on whole pixels.
    height, width = (diagonal + (diagonal - side) % 2 for side in size)
    return height, width


def turned_back(
    angles: Tensor,
    before: tuple[float | Tensor, float | Tensor],
    after: tuple[float, float],
    scale: Tensor | None = None,
) -> Tensor:
    """(N,) → (N, 2, 3): turns by −angle about the point `before`, which lands on `after`."""
    right = _unit(angles)  # (N, 2): where a step to the right goes
    if scale is not None:
        right = scale[..., None] * right
    cos, sin = right.unbind(-1)
    below = torch.stack((-sin, cos), dim=-1)  # (N, 2): and one downwards
    (x, y), (u, v) = before, after
    shift = -(_each(x) * right) - _each(y) * below  # (N, 2)
    if is_square(u, v):
        shift = shift + u
    else:
        shift = torch.stack((shift[..., 0] + u, shift[..., 1] + v), dim=-1)
    return torch.stack((right, below, shift), dim=-1)


def is_square(one: float, other: float) -> bool:
    """Whether one step will do for both, which spares a GPU some of its launches.

    A compiler spares them anyway, and would need a graph for either case.
    """
    return not torch.compiler.is_compiling() and one == other


def _each(number: float | Tensor) -> float | Tensor:
    """One for all, or one of each of N, (N, 1)."""
    return number[..., None] if isinstance(number, Tensor) else number


def on_whole_pixels(transform: Tensor) -> Tensor:
    """Shifts of quarter turns by whole pixels, (N, 2, 3) each.

    Where one side of an image is odd and the other even, a quarter turn about the middle falls
    between the pixels. Half a pixel beside it, it only moves them; the pose knows.
    """
    grid, shift = transform[..., :2], transform[..., 2:]
    quarter = (grid == grid.round()).flatten(1).all(1)[:, None, None]
    whole = with_gradient_of((shift + (0.5 + TIE)).floor(), shift)
    return torch.cat((grid, torch.where(quarter, whole, shift)), dim=-1)


def _unit(angles: Tensor) -> Tensor:
    """(N,) → (N, 2): whole numbers at multiples of 90°, where rounding would blur.

    The gradients are as ever.
    """
    unit = torch.stack((torch.cos(angles), torch.sin(angles)), dim=-1)
    quarter = unit.abs().amin(-1, keepdim=True) < QUARTER_TOLERANCE
    return torch.where(quarter, with_gradient_of(unit.round(), unit), unit)


def inverted(transform: Tensor) -> Tensor:
    """(N, 2, 3) → (N, 2, 3), the way back."""
    turn, shift = transform[..., :2], transform[..., 2]  # (N, 2, 2), (N, 2)
    (a, b), (c, d) = (row.unbind(-1) for row in turn.unbind(-2))
    adjoint = torch.stack((d, -b, -c, a), dim=-1) / (a * d - b * c)[..., None]
    back = adjoint.reshape_as(turn)
    return torch.cat((back, -(back * shift[..., None, :]).sum(-1, keepdim=True)), dim=-1)


def moved(points: Tensor, transform: Tensor) -> Tensor:
    """(N, …, 2), (N, 2, 3) → (N, …, 2)."""
    return moved_xy(points[..., :1], points[..., 1:], transform)


def moved_xy(x: Tensor, y: Tensor, transform: Tensor) -> Tensor:
    """(N, …, 1) each → (N, …, 2), in two passes, of which the first is that of x alone."""
    # Not as a matrix product: under autocast that would lose whole pixels.
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
