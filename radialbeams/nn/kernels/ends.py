"""Triton kernels for what is left of a ring: its view of the whole, and its head.

Both are small products, which torch surrounds by passes over all features: a mean over the beams,
a sum with it, and conversions to float32.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from radialbeams.nn.kernels.operators import operator

VIEWS, WARPS = 16, 4  # of one program for many views, and fewer than 16 make no product
# With fewer such programs, each view has programs of its own. On an H200, 64 views of 48 beams and
# 256 maps take these 9 µs instead of 32, and 1,024 views 111 instead of 49 µs (32 beams and 128
# maps: 5 instead of 17 and 35 instead of 17). Nothing between was measured: straight lines through
# these figures cross at 320 and 450 views, and 16 programs are 256 views.
ENOUGH = 16
MAPS, BEAMS, FEW_WARPS = 64, 64, 8  # of such a program: at once, and its warps
ROWS = 64  # of one program in `head`
WIDEST = 256  # channels that a program can hold

# fmt: off


@triton.jit
def _with_whole(
    x, weight, bias, y, count, H: tl.constexpr, C: tl.constexpr, N: tl.constexpr, V: tl.constexpr,
):
    """x + linear(mean of x over the beams), for V views of H beams."""
    view = tl.program_id(0) * V + tl.arange(0, V)
    column = tl.arange(0, N)
    inside = (view < count)[:, None] & (column < C)[None, :]
    start = view.to(tl.int64)[:, None] * (H * C) + column[None, :]
    total = tl.zeros([V, N], tl.float32)
    for beam in tl.range(0, H, loop_unroll_factor=8):
        total += tl.load(x + start + beam * C, inside, other=0.0).to(tl.float32)
    known = (column < C)[:, None] & (column < C)[None, :]
    w = tl.load(weight + column[:, None] * C + column[None, :], known, other=0.0)
    whole = tl.dot((total / H).to(w.dtype), w)
    whole += tl.load(bias + column, column < C, other=0.0).to(tl.float32)[None, :]
    for beam in tl.range(0, H, loop_unroll_factor=8):
        value = tl.load(x + start + beam * C, inside, other=0.0).to(tl.float32) + whole
        tl.store(y + start + beam * C, value.to(y.dtype.element_ty), inside)


@triton.jit
def _with_whole_of_few(
    x, weight, bias, y, H: tl.constexpr, C: tl.constexpr,
    N: tl.constexpr, K: tl.constexpr, B: tl.constexpr,
):
    """The same for N maps of one view, from its K ≥ C channels of B beams at a time."""
    PARTS: tl.constexpr = (C + N - 1) // N
    column = (tl.program_id(0) % PARTS) * N + tl.arange(0, N)
    view = (tl.program_id(0) // PARTS).to(tl.int64) * (H * C)
    channel = tl.arange(0, K)
    known, wanted = channel < C, column < C
    total = tl.zeros([B, K], tl.float32)
    for above in tl.static_range(0, H, B):
        beam = above + tl.arange(0, B)
        total += tl.load(
            x + view + beam[:, None] * C + channel[None, :],
            (beam < H)[:, None] & known[None, :], other=0.0,
        ).to(tl.float32)
    mean = tl.sum(total, 0) / H
    w = tl.load(
        weight + channel[:, None] * C + column[None, :],
        known[:, None] & wanted[None, :], other=0.0,
    ).to(tl.float32)
    whole = tl.sum(mean[:, None] * w, 0)
    whole += tl.load(bias + column, wanted, other=0.0).to(tl.float32)
    for above in tl.static_range(0, H, B):
        beam = above + tl.arange(0, B)
        place = view + beam[:, None] * C + column[None, :]
        inside = (beam < H)[:, None] & wanted[None, :]
        value = tl.load(x + place, inside, other=0.0).to(tl.float32) + whole[None, :]
        tl.store(y + place, value.to(y.dtype.element_ty), inside)


@triton.jit
def _head(
    x, weight, bias, logits, offsets, rows, reach, C: tl.constexpr, N: tl.constexpr,
    P: tl.constexpr,
):
    """Two sums over the channels of each row: a logit, and an offset within ±reach."""
    row = tl.program_id(0) * P + tl.arange(0, P)
    column = tl.arange(0, N)
    inside = row < rows
    value = tl.load(
        x + row.to(tl.int64)[:, None] * C + column[None, :],
        inside[:, None] & (column < C)[None, :],
        other=0.0,
    ).to(tl.float32)
    first = tl.load(weight + column, column < C, other=0.0).to(tl.float32)
    second = tl.load(weight + C + column, column < C, other=0.0).to(tl.float32)
    logit = tl.sum(value * first[None, :], 1) + tl.load(bias).to(tl.float32)
    offset = tl.sum(value * second[None, :], 1) + tl.load(bias + 1).to(tl.float32)
    tl.store(logits + row, logit, inside)
    tl.store(offsets + row, reach * (2 * tl.sigmoid(2 * offset) - 1), inside)  # tanh


# fmt: on


def _whole_launched(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    x, (count, beams, _, channels) = x.contiguous(), x.shape
    y = torch.empty_like(x)
    width = max(16, triton.next_power_of_2(channels))
    programs = triton.cdiv(count, VIEWS)
    if count:
        with torch.cuda.device_of(x):
            if programs < ENOUGH:
                maps, at_once = min(MAPS, width), min(BEAMS, triton.next_power_of_2(beams))
                _with_whole_of_few[(count * triton.cdiv(channels, maps),)](
                    *(x, weight.contiguous(), bias, y, beams, channels, maps, width, at_once),
                    num_warps=FEW_WARPS,
                )
            else:
                _with_whole[(programs,)](
                    *(x, weight.contiguous(), bias, y, count, beams, channels, width, VIEWS),
                    num_warps=WARPS,
                )
    return y


def _whole_result(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return x.new_empty(x.shape)


def _head_launched(x: Tensor, weight: Tensor, bias: Tensor, reach: float) -> tuple[Tensor, Tensor]:
    x, channels = x.contiguous(), x.shape[3]
    logits, offsets = _head_result(x, weight, bias, reach)
    rows = logits.numel()
    if rows:
        with torch.cuda.device_of(x):
            _head[(triton.cdiv(rows, ROWS),)](
                *(x, weight.contiguous(), bias, logits, offsets, rows, reach, channels),
                *(triton.next_power_of_2(channels), ROWS),
                num_warps=WARPS,
            )
    return logits, offsets


def _head_result(x: Tensor, weight: Tensor, bias: Tensor, reach: float) -> tuple[Tensor, Tensor]:
    """Empty tensors for the result."""
    shape = x.shape[:2]
    return x.new_empty(shape, dtype=torch.float32), x.new_empty(shape, dtype=torch.float32)


_whole_operator = operator("ring_whole", _whole_launched, _whole_result)


def with_whole(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x (N, |B|, 1, C) plus, for every beam, the mean over the beams @ weight (C, C) + bias."""
    y: Tensor = _whole_operator(x, weight, bias)
    return y


_head_operator = operator("ring_head", _head_launched, _head_result)


def head(x: Tensor, weight: Tensor, bias: Tensor, reach: float) -> tuple[Tensor, Tensor]:
    """x (N, |B|, 1, C) with weight (2, C) → logits and offsets, (N, |B|) each, in float32."""
    logits, offsets = _head_operator(x, weight, bias, reach)
    return logits, offsets
