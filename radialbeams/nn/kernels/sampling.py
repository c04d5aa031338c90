"""A Triton kernel that samples the beams of views, in the layout and precision that follows.

`grid_sample` needs the views and the grid of every view in float32, and its result has to be
converted again: four passes over views and beams, where one over each will do.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from radialbeams.nn.kernels.operators import operator

POINTS, WARPS = 256, 4
VIEWS = 4  # of one program, which reads the corners and weights of its points once
ENOUGH = 256  # views, below which each has programs of its own


@triton.jit
def _sample(
    views,
    corner,
    weight,
    beams,
    count,
    step_view,
    step_channel,
    step_pixel,
    SIZE: tl.constexpr,
    CHANNELS: tl.constexpr,
    ACROSS: tl.constexpr,  # (2ε + 1) · D, the points of one beam
    POINTS: tl.constexpr,  # of a view
    P: tl.constexpr,
    VIEWS: tl.constexpr,
):
    PARTS: tl.constexpr = (POINTS + P - 1) // P
    point = (tl.program_id(0) % PARTS) * P + tl.arange(0, P)
    known = point < POINTS
    pixel = tl.load(corner + point, known, other=0) * step_pixel
    upper_left = tl.load(weight + point, known, other=0.0)
    upper_right = tl.load(weight + POINTS + point, known, other=0.0)
    lower_left = tl.load(weight + 2 * POINTS + point, known, other=0.0)
    lower_right = tl.load(weight + 3 * POINTS + point, known, other=0.0)
    beam = point // ACROSS
    place = beam * (CHANNELS * ACROSS) + point % ACROSS  # of the first channel
    below = step_pixel * SIZE
    for number in range(VIEWS):
        view = (tl.program_id(0) // PARTS).to(tl.int64) * VIEWS + number
        valid = known & (view < count)
        for channel in tl.static_range(CHANNELS):
            first = views + view * step_view + channel * step_channel + pixel
            value = tl.load(first, valid, other=0.0).to(tl.float32) * upper_left
            value += tl.load(first + step_pixel, valid, other=0.0).to(tl.float32) * upper_right
            value += tl.load(first + below, valid, other=0.0).to(tl.float32) * lower_left
            value += tl.load(first + below + step_pixel, valid, other=0.0).to(tl.float32) * (
                lower_right
            )
            start = beams + view * (CHANNELS * POINTS) + channel * ACROSS
            tl.store(start + place, value.to(beams.dtype.element_ty), valid)


def _launched(views: Tensor, corner: Tensor, weight: Tensor) -> Tensor:
    beams: Tensor = _result(views, corner, weight)
    count, channels, size = views.shape[:3]
    if views.stride(2) != size * views.stride(3):
        views = views.contiguous()
    corner, weight = corner.contiguous(), weight.contiguous()
    points, together = corner.numel(), VIEWS if count >= ENOUGH else 1
    if count:
        with torch.cuda.device_of(views):
            _sample[(triton.cdiv(points, POINTS) * triton.cdiv(count, together),)](
                *(views, corner, weight, beams, count),
                *(views.stride(0), views.stride(1), views.stride(3)),
                *(size, channels, points // corner.shape[0], points, POINTS, together),
                num_warps=WARPS,
            )
    return beams


def _result(views: Tensor, corner: Tensor, weight: Tensor) -> Tensor:
    """An empty tensor for the result."""
    num_beams, width, length = corner.shape
    beams: Tensor = views.new_empty((views.shape[0], num_beams, views.shape[1], width, length))
    return beams


_operator = operator("ring_beams", _launched, _result)


def sampled(views: Tensor, corner: Tensor, weight: Tensor) -> Tensor:
    """Views (N, C, W, W) → their beams (N, |B|, C, 2ε + 1, D), bilinearly.

    `corner` (|B|, 2ε + 1, D), int32, is the upper left pixel around each point, and `weight`
    (4, …), float32, are the weights of the four: left and right, then those below.
    """
    beams: Tensor = _operator(views, corner, weight)
    return beams
