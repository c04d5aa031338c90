"""A Triton kernel for two convolutions in a row, the second 1 × 1, with a skip connection.

What is between them stays where it is computed: it is neither stored nor read again. This is the
whole of a ring block, and of the second half of an attention block.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from radialbeams.nn.kernels.arithmetic import gelu
from radialbeams.nn.kernels.convolution import Tile, products, step_for
from radialbeams.nn.kernels.operators import operator

# By the number of maps: rows, hidden maps at once, channels at once, warps, loads in flight. A
# trial may replace them; without an entry, the two convolutions run one after the other.
TILES: dict[int, Tile] = {
    32: Tile(128, 32, 32, 4, 3),
    64: Tile(128, 64, 64, 4, 3),
    128: Tile(128, 128, 64, 8, 3),
}

ENOUGH = 132  # programs, below which those of half as many rows keep more of a GPU busy


def tile_for(rows: int, maps: int) -> Tile:
    tile = TILES[maps]
    if triton.cdiv(rows, tile.rows) >= ENOUGH or tile.rows < 128:
        return tile
    return tile._replace(rows=tile.rows // 2, warps=4)


def fits(channels: int, hidden: int, maps: int) -> bool:
    """Whether there is a tile for it: a program holds all maps of its rows."""
    tile = TILES.get(maps)
    return tile is not None and channels % 16 == 0 and hidden % tile.maps == 0


# fmt: off
@triton.jit
def _pair(
    x, weight, bias, weight2, bias2, y, rows,
    H: tl.constexpr, C: tl.constexpr, HIDDEN: tl.constexpr, M: tl.constexpr,
    ACROSS: tl.constexpr, DILATION: tl.constexpr, GELU: tl.constexpr,
    P: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):
    """gelu(x + gelu(x ∗ weight + bias) @ weight2 + bias2), the outer GELU if asked for."""
    row = tl.program_id(0) * P + tl.arange(0, P)
    column = tl.arange(0, M)
    inside = row < rows
    beam = row % H
    image = row // H
    acc = tl.zeros([P, M], tl.float32)
    for first in tl.static_range(0, HIDDEN, N):
        some = first + tl.arange(0, N)
        hidden = products(
            tl.zeros([P, N], tl.float32), x, weight, image, beam, row * 0, inside, some,
            H, 1, C, HIDDEN, ACROSS, 1, 1, 0, DILATION, False, K,
        )
        hidden = gelu(hidden + tl.load(bias + some).to(tl.float32)[None, :])
        w = tl.load(weight2 + some[:, None] * M + column[None, :])
        acc = tl.dot(hidden.to(w.dtype), w, acc)
    acc += tl.load(bias2 + column).to(tl.float32)[None, :]
    where = row.to(tl.int64)[:, None] * M + column[None, :]
    acc += tl.load(x + where, inside[:, None], other=0.0).to(tl.float32)
    if GELU:
        acc = gelu(acc)
    tl.store(y + where, acc.to(y.dtype.element_ty), inside[:, None])
# fmt: on


def _launched(
    x: Tensor,
    taps: Tensor,
    bias: Tensor,
    taps2: Tensor,
    bias2: Tensor,
    dilation: int,
    activate: bool,
) -> Tensor:
    x, maps = x.contiguous(), x.shape[3]
    y = torch.empty_like(x)
    rows = x.numel() // maps
    if rows:
        tile = tile_for(rows, maps)
        with torch.cuda.device_of(x):
            _pair[(triton.cdiv(rows, tile.rows),)](
                *(x, taps.contiguous(), bias, taps2.contiguous(), bias2, y, rows),
                *(x.shape[1], maps, taps.shape[2], maps, taps.shape[0], dilation, activate),
                *(tile.rows, tile.maps, step_for(maps, tile.channels)),
                num_warps=tile.warps,
                num_stages=tile.stages,
                maxnreg=tile.registers,
            )
    return y


def _result(
    x: Tensor,
    taps: Tensor,
    bias: Tensor,
    taps2: Tensor,
    bias2: Tensor,
    dilation: int,
    activate: bool,
) -> Tensor:
    return x.new_empty(x.shape)


_operator = operator("ring_pair", _launched, _result)


def pair(
    x: Tensor,
    first: tuple[Tensor, Tensor],
    second: tuple[Tensor, Tensor],
    *,
    dilation: int = 1,
    activate: bool = True,
) -> Tensor:
    """(N, |B|, 1, C) → gelu(x + second(gelu(first(x)))), of the same shape, in one kernel.

    Both are taps and bias: (across, C, hidden), around the circle, and (1, hidden, C).
    """
    y: Tensor = _operator(x, *first, *second, dilation, activate)
    return y
