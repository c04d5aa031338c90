"""A Triton kernel for the first convolution of the convolutional network, straight from the views.

torch would scale the views, pad them, convolve, add the bias and apply ReLU6, each in a pass of its
own over all pixels.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from radialbeams.nn.kernels.arithmetic import operand, relu6
from radialbeams.nn.kernels.depthwise import Footprint
from radialbeams.nn.kernels.operators import operator

PIXELS, WARPS = 128, 4
FAR = 2**31  # places within one image are counted in 32 bits


# fmt: off
@triton.jit
def _stem(
    views, weight, bias, y, total,
    step_image, step_channel, step_row, step_column,
    scale, shift,
    H: tl.constexpr, W: tl.constexpr, CHANNELS: tl.constexpr,
    OUT_H: tl.constexpr, OUT_W: tl.constexpr,
    FIRST: tl.constexpr, STRIDE: tl.constexpr, TAPS: tl.constexpr,
    M: tl.constexpr,
    P: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):
    """One tile of relu6((scale · views + shift) ∗ weight + bias)."""
    pixel = tl.program_id(0) * P + tl.arange(0, P)
    k = tl.arange(0, K)  # (row · taps + column) · channels + channel
    maps = tl.arange(0, N)
    inside = pixel < total
    known = k < TAPS * TAPS * CHANNELS
    r = ((pixel // OUT_W) % OUT_H * STRIDE - FIRST)[:, None] + (k // (TAPS * CHANNELS))[None, :]
    q = (pixel % OUT_W * STRIDE - FIRST)[:, None] + (k // CHANNELS % TAPS)[None, :]
    image = (pixel // (OUT_W * OUT_H)).to(tl.int64) * step_image
    valid = inside[:, None] & known[None, :] & (r >= 0) & (r < H) & (q >= 0) & (q < W)
    across = q * step_column + (k % CHANNELS * step_channel)[None, :]
    place = image[:, None] + (r * step_row + across)
    value = tl.load(views + place, valid, other=0.0).to(tl.float32)
    value = tl.where(valid, value * scale + shift, 0.0)  # around the view, zeros
    w = tl.load(
        weight + k[:, None] * M + maps[None, :], known[:, None] & (maps < M)[None, :], other=0.0
    )
    acc = tl.dot(operand(value.to(w.dtype)), w)
    acc += tl.load(bias + maps, maps < M, other=0.0).to(tl.float32)[None, :]
    where = pixel.to(tl.int64)[:, None] * M + maps[None, :]
    stored = inside[:, None] & (maps < M)[None, :]
    tl.store(y + where, relu6(acc).to(y.dtype.element_ty), stored)
# fmt: on


def _launched(
    views: Tensor, taps: Tensor, bias: Tensor, scaling: list[float], footprint: list[int]
) -> Tensor:
    y: Tensor = _result(views, taps, bias, scaling, footprint)
    if not y.numel():
        return y
    size, stride, before, _ = footprint
    count, height, width, maps = y.shape
    _, channels, rows, columns = views.shape
    if channels * views.stride(1) + rows * views.stride(2) + columns * views.stride(3) >= FAR:
        views = views.contiguous()
    total = count * height * width
    with torch.cuda.device_of(views):
        _stem[(triton.cdiv(total, PIXELS),)](
            *(views, taps, bias, y, total, *views.stride(), *scaling),
            *(rows, columns, channels, height, width, before, stride, size, maps),
            *(PIXELS, _at_least_16(maps), _at_least_16(len(taps))),
            num_warps=WARPS,
        )
    return y


def _at_least_16(values: int) -> int:
    """The next power of 2 that a matrix product on a GPU may have as a side."""
    return max(16, int(triton.next_power_of_2(values)))


def _result(
    views: Tensor, taps: Tensor, bias: Tensor, scaling: list[float], footprint: list[int]
) -> Tensor:
    """An empty tensor for the result."""
    height, width = map(Footprint(*footprint).reached, views.shape[2:])
    y: Tensor = taps.new_empty((views.shape[0], height, width, taps.shape[1]))
    return y


_operator = operator("view_stem", _launched, _result)


def stem(
    views: Tensor, taps: Tensor, bias: Tensor, scaling: tuple[float, float], footprint: Footprint
) -> Tensor:
    """Views (N, C, S, S), taps (size² · C, maps) → (N, H, W, maps), in the taps' precision.

    `scaling` is the factor and the shift of the views before they are convolved.
    """
    y: Tensor = _operator(views, taps, bias, list(scaling), list(footprint))
    return y
