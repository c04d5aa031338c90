"""From the outputs of a network straight to upright images, where nobody asks for the pose.

On a GPU, the pose of a batch is about fifty kernels of a few numbers each, which together take
longer than the rotation. If all images are turned by the angle of the most probable bin, one kernel
gives the maps that the rotation needs.
"""

from __future__ import annotations

from typing import TypeGuard

from torch import Tensor

from radialbeams.front.affine import QUARTER_TOLERANCE, TIE, Canvas, canvas_size, middle
from radialbeams.front.sampling import interpolate
from radialbeams.nn.kernels.using import served

MOST_BINS = 4096  # read by one program


def goes_straight(
    outputs: Tensor | tuple[Tensor, Tensor],
) -> TypeGuard[tuple[Tensor, Tensor]]:
    """Whether the outputs are a posterior that our kernel can read."""
    if isinstance(outputs, Tensor):
        return False
    logits, offsets = outputs
    return logits.shape[-1] <= MOST_BINS and served(logits, offsets)


def turned_upright(
    images: Tensor, logits: Tensor, offsets: Tensor, canvas: Canvas, fill: float
) -> Tensor:
    """(N, C, H, W), (N, bins) and (N, bins) → (N, C, H', W')."""
    from radialbeams.nn.kernels.reading import origins  # needs Triton

    size = (images.shape[-2], images.shape[-1])
    after = canvas_size(size, canvas)
    middles = [*middle(size), *middle(after)]
    origin = origins(logits, offsets, middles, QUARTER_TOLERANCE, TIE)  # (N, 2, 3)
    return interpolate(images, origin, after, fill)
