"""A Triton kernel for a convolution around the ring with all that follows it, in one pass.

Half precision makes products so fast that a network spends most of its time in moving features:
padding a circle, gathering neighbours, adding a bias or a skip connection, GELU. Here a program
reads the neighbours where they are (around the circle, so nothing is padded), adds up the products
in float32, and applies the rest before it stores anything.

Features are (N, |B|, D, C) in one piece: |B| beams in a circle, D places along each, C channels.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from radialbeams.nn.kernels.arithmetic import gelu
from radialbeams.nn.kernels.operators import operator


class Tile(NamedTuple):
    """What one program computes, and how: rows × maps, in steps of `channels`."""

    rows: int
    maps: int
    channels: int
    warps: int
    stages: int  # of loads in flight
    registers: int | None = None  # at most, of a thread


class Along(NamedTuple):
    """How a convolution reads: taps and stride along the beams, and steps across them."""

    taps: int = 1
    stride: int = 1
    padding: int = 0
    dilation: int = 1  # across the beams


POINT = Along()  # of a 1 × 1 convolution

# Tiles by how wide they are, for many rows and for few. A trial may replace them.
MANY: dict[int, Tile] = {
    32: Tile(128, 32, 64, 4, 4),
    64: Tile(128, 64, 64, 4, 3),
    128: Tile(128, 128, 64, 8, 3),
}
FEW = Tile(64, 32, 64, 4, 4)
ENOUGH = 264  # programs of the large tile, below which more of the GPU is busy with small ones
WIDTHS = {96: 128, 192: 64}  # of the tile, by the number of maps, where it is not the obvious one
STEPS = {48: 64}  # channels at once, likewise: beyond the last channel, zeros are read


def tile_for(rows: int, channels: int, maps: int) -> Tile:
    """The tile for a product of rows × `channels` with `channels` × maps."""
    width = WIDTHS.get(maps) or max(size for size in MANY if size <= max(maps, min(MANY)))
    tile = MANY[width]
    if triton.cdiv(rows, tile.rows) * triton.cdiv(maps, tile.maps) < ENOUGH:
        tile = FEW
    return tile._replace(channels=step_for(channels, tile.channels))


def step_for(channels: int, most: int) -> int:
    """How many channels are read at once."""
    known = STEPS.get(channels)
    return known or next(
        (size for size in (128, 64, 32) if size <= most and not channels % size), 16
    )


def sizes_fit(channels: int, maps: int) -> bool:
    """Whether every row starts where a GPU can read 16 bytes at once."""
    return channels % 16 == 0 and maps % 16 == 0


# fmt: off
@triton.jit
def products(
    acc, x, weight,
    image, beam, place, inside, column,  # (P,) of every row; (maps,)
    H: tl.constexpr, L: tl.constexpr, C: tl.constexpr, M: tl.constexpr,
    ACROSS: tl.constexpr, ALONG: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr,
    DILATION: tl.constexpr,
    CLAMPED: tl.constexpr,  # beyond the end of a beam, its last place is read; otherwise zeros
    K: tl.constexpr,
):
    """Adds (P, taps · C) @ (taps · C, maps) to the accumulator, K channels of one tap at a time."""
    STEPS: tl.constexpr = (C + K - 1) // K
    SHIFT: tl.constexpr = -DILATION * (ACROSS // 2)
    first = x + image.to(tl.int64) * (H * L * C)
    for step in range(0, ACROSS * ALONG * STEPS):
        tap = step // STEPS
        channel = (step % STEPS) * K + tl.arange(0, K)
        b = beam + (tap // ALONG) * DILATION + SHIFT
        b = tl.where(b < 0, b + H, b)
        b = tl.where(b >= H, b - H, b)
        l = place * STRIDE + tap % ALONG - PADDING  # noqa: E741
        if CLAMPED:
            l = tl.minimum(l, L - 1)  # noqa: E741
            valid = inside
        else:
            valid = inside & (l >= 0) & (l < L)
        start = first + (b * L + l) * C
        known = channel < C
        a = tl.load(start[:, None] + channel[None, :], valid[:, None] & known[None, :], other=0.0)
        w = tl.load(
            weight + (tap * C + channel)[:, None] * M + column[None, :],
            known[:, None] & (column < M)[None, :],
            other=0.0,
        )
        acc = tl.dot(a, w, acc)
    return acc


@triton.jit
def _convolution(
    x, weight, bias, skip, x2, weight2, y, rows,
    H: tl.constexpr, L: tl.constexpr, C: tl.constexpr,
    OUT: tl.constexpr,  # places along a beam of the result
    M: tl.constexpr,
    ACROSS: tl.constexpr, ALONG: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr,
    DILATION: tl.constexpr,
    L2: tl.constexpr, C2: tl.constexpr, ALONG2: tl.constexpr, STRIDE2: tl.constexpr,
    BIAS: tl.constexpr, SKIP: tl.constexpr, TWO: tl.constexpr, GELU: tl.constexpr,
    P: tl.constexpr, N: tl.constexpr, K: tl.constexpr, K2: tl.constexpr,
):
    """One tile of gelu(x ∗ weight + x2 ∗ weight2 + bias + skip), of the parts asked for."""
    PARTS: tl.constexpr = (M + N - 1) // N
    # Programs of the same rows follow each other, so that the second finds them in the cache.
    row = (tl.program_id(0) // PARTS) * P + tl.arange(0, P)
    column = (tl.program_id(0) % PARTS) * N + tl.arange(0, N)
    inside = row < rows
    place = row % OUT
    beam = (row // OUT) % H
    image = row // (OUT * H)
    acc = tl.zeros([P, N], tl.float32)
    acc = products(
        acc, x, weight, image, beam, place, inside, column, H, L, C, M,
        ACROSS, ALONG, STRIDE, PADDING, DILATION, False, K,
    )
    if TWO:
        acc = products(
            acc, x2, weight2, image, beam, place, inside, column, H, L2, C2, M,
            1, ALONG2, STRIDE2, 0, 1, True, K2,
        )
    if BIAS:
        acc += tl.load(bias + column, column < M, other=0.0).to(tl.float32)[None, :]
    where = row.to(tl.int64)[:, None] * M + column[None, :]
    stored = inside[:, None] & (column < M)[None, :]
    if SKIP:
        acc += tl.load(skip + where, stored, other=0.0).to(tl.float32)
    if GELU:
        acc = gelu(acc)
    tl.store(y + where, acc.to(y.dtype.element_ty), stored)
# fmt: on


def _launched(
    x: Tensor,
    taps: Tensor,
    bias: Tensor | None,
    skip: Tensor | None,
    x2: Tensor | None,
    taps2: Tensor | None,
    geometry: list[int],  # of `Along`, then taps and stride along the beams of x2
    activate: bool,
) -> Tensor:
    beams, length, channels = x.shape[1:]
    maps = taps.shape[2]
    along, stride, padding, dilation, along2, stride2 = geometry
    y: Tensor = _result(x, taps, bias, skip, x2, taps2, geometry, activate)
    rows, out = y.numel() // maps, y.shape[2]
    if not rows:
        return y
    tile = tile_for(rows, channels, maps)
    x, taps = x.contiguous(), taps.contiguous()
    skip = None if skip is None else skip.contiguous()
    two = x2 is not None and taps2 is not None
    x2 = x2.contiguous() if x2 is not None else x
    with torch.cuda.device_of(x):
        _convolution[(triton.cdiv(rows, tile.rows) * triton.cdiv(maps, tile.maps),)](
            *(x, taps, bias if bias is not None else x, skip if skip is not None else x),
            *(x2, taps2.contiguous() if taps2 is not None else taps, y, rows),
            *(beams, length, channels, out, maps, taps.shape[0] // along, along, stride),
            *(padding, dilation, x2.shape[2], x2.shape[3], along2, stride2),
            *(bias is not None, skip is not None, two, activate),
            *(tile.rows, tile.maps, tile.channels, step_for(x2.shape[3], tile.channels)),
            num_warps=tile.warps,
            num_stages=tile.stages,
            maxnreg=tile.registers,
        )
    return y


def _result(
    x: Tensor,
    taps: Tensor,
    bias: Tensor | None,
    skip: Tensor | None,
    x2: Tensor | None,
    taps2: Tensor | None,
    geometry: list[int],
    activate: bool,
) -> Tensor:
    """An empty tensor for the result."""
    along, stride, padding = geometry[:3]
    out = (x.shape[2] + 2 * padding - along) // stride + 1
    y: Tensor = x.new_empty((x.shape[0], x.shape[1], out, taps.shape[2]))
    return y


_operator = operator("ring_convolution", _launched, _result)


def convolution(
    x: Tensor,
    taps: Tensor,
    bias: Tensor | None = None,
    *,
    read: Along = POINT,
    skip: Tensor | None = None,
    beside: tuple[Tensor, Tensor, int] | None = None,
    activate: bool = True,
) -> Tensor:
    """(N, |B|, D, C) with taps (across · along, C, maps) → (N, |B|, D', maps), in one kernel.

    Around the circle across the beams, with zeros beyond their ends. Then, if given: + bias, +
    `skip` (N, |B|, D', maps), and GELU. `beside` is a second convolution to add, with no padding
    and only along the beams: its input, its taps, and their stride.
    """
    x2, taps2, stride2 = beside or (None, None, 1)
    along2 = 1 if taps2 is None else taps2.shape[0]
    y: Tensor = _operator(x, taps, bias, skip, x2, taps2, [*read, along2, stride2], activate)
    return y
