"""A Triton kernel for the attention between the beams of a ring.

There are so few beams that one program holds all scores of a head.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from radialbeams.nn.kernels.operators import operator

WARPS = 4
MOST_BEAMS, MOST_CHANNELS = 128, 128  # of a head

# fmt: off


@triton.jit
def _attention(
    projected, bias, y, scale,
    H: tl.constexpr, HEADS: tl.constexpr, D: tl.constexpr,  # beams, heads, channels of a head
    B: tl.constexpr, K: tl.constexpr,  # beams and channels, as tensor cores take them
):
    """softmax(scale · query @ key + bias) @ value, of one head of one view."""
    C: tl.constexpr = HEADS * D
    head = tl.program_id(0) % HEADS
    view = (tl.program_id(0) // HEADS).to(tl.int64)
    beam, channel = tl.arange(0, B), tl.arange(0, K)
    known = (beam < H)[:, None] & (channel < D)[None, :]
    both = (beam < H)[:, None] & (beam < H)[None, :]
    rows = projected + view * (H * 3 * C) + head * D + beam[:, None] * (3 * C)
    query = tl.load(rows + channel[None, :], known, other=0.0)
    key = tl.load(rows + C + channel[None, :], known, other=0.0)
    value = tl.load(rows + 2 * C + channel[None, :], known, other=0.0)
    scores = tl.dot(query, tl.trans(key)) * scale
    by_distance = bias + head * (H * H) + beam[:, None] * H + beam[None, :]
    scores += tl.load(by_distance, both, other=0.0).to(tl.float32)
    scores = tl.where((beam < H)[None, :], scores, -float("inf"))
    shares = tl.exp(scores - tl.max(scores, 1)[:, None])
    mixed = tl.dot(shares.to(value.dtype), value) / tl.sum(shares, 1)[:, None]
    where = y + view * (H * C) + head * D + beam[:, None] * C + channel[None, :]
    tl.store(where, mixed.to(y.dtype.element_ty), known)


# fmt: on


def _launched(projected: Tensor, bias: Tensor) -> Tensor:
    projected, bias = projected.contiguous(), bias.contiguous()
    y: Tensor = _result(projected, bias)
    count, beams, _, channels = y.shape
    heads = bias.shape[0]
    each = channels // heads
    if count:
        with torch.cuda.device_of(projected):
            _attention[(count * heads,)](
                *(projected, bias, y, each**-0.5, beams, heads, each),
                *(_at_least_16(beams), _at_least_16(each)),
                num_warps=WARPS,
            )
    return y


def _at_least_16(values: int) -> int:
    """The next power of 2 that a matrix product on a GPU may have as a side."""
    return max(16, int(triton.next_power_of_2(values)))


def _result(projected: Tensor, bias: Tensor) -> Tensor:
    """An empty tensor for the result."""
    y: Tensor = projected.new_empty((*projected.shape[:3], projected.shape[3] // 3))
    return y


_operator = operator("ring_attention", _launched, _result)


def attended(projected: Tensor, bias: Tensor) -> Tensor:
    """Queries, keys and values (N, |B|, 1, 3·C), bias (heads, |B|, |B|) → (N, |B|, 1, C)."""
    y: Tensor = _operator(projected, bias)
    return y


def fits(beams: int, channels: int) -> bool:
    """Whether a program can hold all scores of a head."""
    return beams <= MOST_BEAMS and channels <= MOST_CHANNELS
