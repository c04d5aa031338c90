"""A Triton kernel for a 1 × 1 convolution with its bias, skip connection and ReLU6.

At these sizes the memory sets the least time, so everything that follows the product happens before
its result is stored. Unlike the ring's kernels, this one takes its sizes when it runs: a network
has two dozen of them, and each would be compiled for a second.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from radialbeams.nn.kernels.arithmetic import operand, relu6, step_of
from radialbeams.nn.kernels.operators import operator

ALIGNED = 8  # channels: the values of 16 bits that a GPU reads at once


class ProductTile(NamedTuple):
    """What one program computes, and how: rows × maps, in steps of `channels`."""

    rows: int
    maps: int
    channels: int
    warps: int
    stages: int  # of loads in flight


# By how many maps, at most, and by how many channels. A trial may replace them.
NARROW, MIDDLE, WIDE = 24, 64, 1 << 30
TILES: dict[tuple[int, bool], ProductTile] = {  # the second: more channels than maps
    (NARROW, True): ProductTile(256, 64, 32, 8, 3),
    (NARROW, False): ProductTile(128, 32, 32, 4, 4),
    (MIDDLE, True): ProductTile(128, 64, 64, 4, 3),
    (MIDDLE, False): ProductTile(128, 64, 64, 4, 3),
    (WIDE, True): ProductTile(128, 128, 64, 8, 3),
    (WIDE, False): ProductTile(128, 64, 32, 4, 3),
}
FEW = ProductTile(64, 32, 64, 4, 4)
ENOUGH = 264  # programs of the large tile, below which more of the GPU is busy with small ones


def tile_for(rows: int, channels: int, maps: int) -> ProductTile:
    """The tile for a product of rows × `channels` with `channels` × maps."""
    width = next(most for most in (NARROW, MIDDLE, WIDE) if maps <= most)
    tile = TILES[width, channels > maps]
    if triton.cdiv(rows, tile.rows) * triton.cdiv(maps, tile.maps) < ENOUGH:
        return FEW
    return tile


# fmt: off
@triton.jit
def _product(
    x, weight, bias, skip, y, rows,
    channels_8, maps_8,  # an eighth of them, so that the compiler knows that rows are aligned
    SKIP: tl.constexpr, ACTIVATE: tl.constexpr,
    P: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):
    """One tile of relu6(x @ weight + bias + skip), of the parts asked for."""
    C, M = channels_8 * 8, maps_8 * 8
    parts = tl.cdiv(M, N)
    # Programs of the same rows follow each other, so that the second finds them in the cache.
    row = (tl.program_id(0) // parts) * P + tl.arange(0, P)
    column = (tl.program_id(0) % parts) * N + tl.arange(0, N)
    channel = tl.arange(0, K)
    inside, wanted = row < rows, column < M
    features = x + row.to(tl.int64)[:, None] * C + channel[None, :]
    weights = weight + channel[:, None] * M + column[None, :]
    acc = tl.zeros([P, N], tl.float32)
    for start_8 in range(0, channels_8, K // 8):
        known = start_8 * 8 + channel < C
        a = tl.load(features + start_8 * 8, inside[:, None] & known[None, :], other=0.0)
        w = tl.load(weights + start_8 * 8 * M, known[:, None] & wanted[None, :], other=0.0)
        acc = tl.dot(operand(a), w, acc)
    acc += tl.load(bias + column, wanted, other=0.0).to(tl.float32)[None, :]
    where = row.to(tl.int64)[:, None] * M + column[None, :]
    stored = inside[:, None] & wanted[None, :]
    if SKIP:
        acc += tl.load(skip + where, stored, other=0.0).to(tl.float32)
    if ACTIVATE:
        acc = relu6(acc)
    tl.store(y + where, acc.to(y.dtype.element_ty), stored)
# fmt: on


def _launched(x: Tensor, taps: Tensor, bias: Tensor, skip: Tensor | None, activate: bool) -> Tensor:
    y: Tensor = _result(x, taps, bias, skip, activate)
    if not y.numel():
        return y
    channels, maps = taps.shape
    rows = y.numel() // maps
    tile = tile_for(rows, channels, maps)
    x = x.contiguous()
    skip = None if skip is None else skip.contiguous()
    with torch.cuda.device_of(x):
        _product[(triton.cdiv(rows, tile.rows) * triton.cdiv(maps, tile.maps),)](
            *(x, taps, bias, x if skip is None else skip, y, rows),
            *(channels // ALIGNED, maps // ALIGNED, skip is not None, activate),
            *(tile.rows, tile.maps, step_of(tile.channels, x.dtype)),
            num_warps=tile.warps,
            num_stages=tile.stages,
        )
    return y


def _result(x: Tensor, taps: Tensor, bias: Tensor, skip: Tensor | None, activate: bool) -> Tensor:
    """An empty tensor for the result."""
    y: Tensor = x.new_empty((*x.shape[:-1], taps.shape[1]))
    return y


_operator = operator("product", _launched, _result)


def product(
    x: Tensor,
    taps: Tensor,
    bias: Tensor,
    *,
    skip: Tensor | None = None,
    activate: bool = False,
) -> Tensor:
    """(…, C) with taps (C, maps) → x @ taps + bias, (…, maps); + `skip`, and ReLU6 if `activate`.

    C and maps are multiples of 8, and the taps are in one piece and `rounded`.
    """
    y: Tensor = _operator(x, taps, bias, skip, activate)
    return y


def sizes_fit(channels: int, maps: int) -> bool:
    """Whether every row starts where a GPU can read 16 bytes at once."""
    return channels % ALIGNED == 0 and maps % ALIGNED == 0
