"""A Triton kernel for a depthwise convolution with its bias and ReLU6, at inference.

Here too the memory sets the least time. torch pads the image in a pass of its
own where TensorFlow's padding is uneven, adds the bias and the activation in another one, and has
no fast kernel for a stride of 2 on features of more than 2³¹ values. Here a program reads the image
where it is, and uses each row that it has read for several rows of the result.

Features are (N, H, W, C) in one piece.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from radialbeams.nn.kernels.arithmetic import relu6
from radialbeams.nn.kernels.operators import operator
from radialbeams.nn.kernels.product import ALIGNED


class Footprint(NamedTuple):
    """How a convolution with square taps reads an image."""

    size: int  # of the taps
    stride: int
    before: int  # rows and columns of zeros before the image
    after: int

    def reached(self, side: int) -> int:
        """The pixels of the result along a side of the image."""
        return (side + self.before + self.after - self.size) // self.stride + 1


class DepthwiseTile(NamedTuple):
    """What one program computes, and how: pixels × channels of `rows` rows of the result."""

    rows: int  # 1 or 2
    pixels: int
    channels: int
    warps: int


# By the size of the taps and the stride. A trial may replace them.
TILES: dict[tuple[int, int], DepthwiseTile] = {
    (3, 1): DepthwiseTile(2, 64, 32, 4),
    (3, 2): DepthwiseTile(2, 64, 32, 4),
    (5, 1): DepthwiseTile(2, 16, 64, 4),
    (5, 2): DepthwiseTile(1, 64, 32, 4),
}


# fmt: off
@triton.jit
def _depthwise(
    x, weight, bias, y, total,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr,
    OUT_H: tl.constexpr, OUT_W: tl.constexpr,
    FIRST: tl.constexpr,  # rows and columns of zeros before the image
    STRIDE: tl.constexpr, TAPS: tl.constexpr,
    R: tl.constexpr, P: tl.constexpr, K: tl.constexpr,
):
    """One tile of relu6(x ∗ weight + bias): K channels of P pixels in each of R rows."""
    PARTS: tl.constexpr = (C + K - 1) // K
    GROUPS: tl.constexpr = (OUT_H + R - 1) // R
    # Programs of the same pixels follow each other: together they read whole lines of memory.
    c = (tl.program_id(0) % PARTS) * K + tl.arange(0, K)
    pixel = (tl.program_id(0) // PARTS) * P + tl.arange(0, P)
    known = c < C
    inside = pixel < total
    column = pixel % OUT_W
    row = ((pixel // OUT_W) % GROUPS) * R
    image = (pixel // (OUT_W * GROUPS)).to(tl.int64)
    top, left = row * STRIDE - FIRST, column * STRIDE - FIRST
    start = (image * H + top) * (W * C) + left * C  # may lie before the image; never read there
    first = x + start[:, None] + c[None, :]
    acc = tl.zeros([P, K], tl.float32)
    below = tl.zeros([P, K], tl.float32)
    for i in tl.static_range((R - 1) * STRIDE + TAPS):
        reached = inside & (top + i >= 0) & (top + i < H)
        for j in tl.static_range(TAPS):
            valid = reached & (left + j >= 0) & (left + j < W)
            value = tl.load(
                first + (i * W + j) * C, valid[:, None] & known[None, :], other=0.0
            ).to(tl.float32)
            if i < TAPS:
                tap = tl.load(weight + (i * TAPS + j) * C + c, known, other=0.0)
                acc += value * tap.to(tl.float32)[None, :]
            if R == 2 and i >= STRIDE:
                tap = tl.load(weight + ((i - STRIDE) * TAPS + j) * C + c, known, other=0.0)
                below += value * tap.to(tl.float32)[None, :]
    shift = tl.load(bias + c, known, other=0.0).to(tl.float32)[None, :]
    where = ((image * OUT_H + row) * OUT_W + column) * C
    target = y + where[:, None] + c[None, :]
    stored = inside[:, None] & known[None, :]
    tl.store(target, relu6(acc + shift).to(y.dtype.element_ty), stored)
    if R == 2:
        stored = stored & (row + 1 < OUT_H)[:, None]
        tl.store(target + OUT_W * C, relu6(below + shift).to(y.dtype.element_ty), stored)
# fmt: on


def _launched(x: Tensor, taps: Tensor, bias: Tensor, footprint: list[int]) -> Tensor:
    y: Tensor = _result(x, taps, bias, footprint)
    if not y.numel():
        return y
    size, stride, before, _ = footprint
    count, height, width, channels = y.shape
    tile = TILES[size, stride]
    total = count * -(-height // tile.rows) * width
    x = x.contiguous()
    with torch.cuda.device_of(x):
        _depthwise[(triton.cdiv(total, tile.pixels) * triton.cdiv(channels, tile.channels),)](
            *(x, taps, bias, y, total, *x.shape[1:], height, width, before, stride, size),
            *(tile.rows, tile.pixels, tile.channels),
            num_warps=tile.warps,
        )
    return y


def _result(x: Tensor, taps: Tensor, bias: Tensor, footprint: list[int]) -> Tensor:
    """An empty tensor for the result."""
    height, width = map(Footprint(*footprint).reached, x.shape[1:3])
    y: Tensor = x.new_empty((x.shape[0], height, width, x.shape[3]))
    return y


_operator = operator("depthwise", _launched, _result)


def depthwise(x: Tensor, taps: Tensor, bias: Tensor, footprint: Footprint) -> Tensor:
    """(N, H, W, C) with taps (size², C) → relu6(x ∗ taps + bias), (N, H', W', C)."""
    y: Tensor = _operator(x, taps, bias, list(footprint))
    return y


def can_compute(size: int, stride: int, channels: int) -> bool:
    """Whether there is a tile for it, and every pixel starts where 16 bytes are read at once."""
    return (size, stride) in TILES and channels % ALIGNED == 0
