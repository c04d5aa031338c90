"""A Triton kernel for the first convolution of a ring, straight from the sampled beams.

The beams are in float32 and in the layout of the sampler. torch would convert them, close the
circle, change the layout, convolve and apply GELU, each in a pass of its own over all features.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from radialbeams.nn.kernels.arithmetic import gelu
from radialbeams.nn.kernels.operators import operator

ROWS, WARPS = 128, 4
MOST = 128  # values under one position of the convolution: they are read at once


@triton.jit
def _stem(
    beams,
    weight,
    bias,
    y,
    rows,
    step_image,
    step_beam,
    step_channel,
    step_beside,
    H: tl.constexpr,
    E: tl.constexpr,  # 2ε + 1
    Q: tl.constexpr,  # channels · (2ε + 1)
    OUT: tl.constexpr,
    STRIDE: tl.constexpr,
    M: tl.constexpr,
    P: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
):
    row = tl.program_id(0) * P + tl.arange(0, P)
    column = tl.arange(0, N)
    k = tl.arange(0, K)  # ((tap · channels + channel) · (2ε + 1) + beside) · stride + along
    inside = row < rows
    known = k < 3 * Q * STRIDE
    q = (k // STRIDE) % Q
    b = (row // OUT) % H
    b = b[:, None] + (k // (STRIDE * Q))[None, :] - 1  # (P, K)
    b = tl.where(b < 0, b + H, b)
    b = tl.where(b >= H, b - H, b)
    image = (row // (OUT * H)).to(tl.int64) * step_image
    along = (row % OUT)[:, None] * STRIDE + (k % STRIDE)[None, :]
    across = (q // E) * step_channel + (q % E) * step_beside
    value = tl.load(
        beams + image[:, None] + (b * step_beam + across[None, :] + along),
        inside[:, None] & known[None, :],
        other=0.0,
    )
    w = tl.load(
        weight + k[:, None] * M + column[None, :],
        known[:, None] & (column < M)[None, :],
        other=0.0,
    )
    acc = tl.dot(value.to(w.dtype), w)
    acc += tl.load(bias + column, column < M, other=0.0).to(tl.float32)[None, :]
    where = row.to(tl.int64)[:, None] * M + column[None, :]
    stored = inside[:, None] & (column < M)[None, :]
    tl.store(y + where, gelu(acc).to(y.dtype.element_ty), stored)


def _launched(beams: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
    y: Tensor = _result(beams, weight, bias, stride)
    maps = y.shape[3]
    rows, weight = y.numel() // maps, weight.contiguous()
    beams = beams if beams.stride(4) == 1 else beams.contiguous()
    if rows:
        with torch.cuda.device_of(beams):
            _stem[(triton.cdiv(rows, ROWS),)](
                *(beams, weight, bias, y, rows, *beams.stride()[:4]),
                *(beams.shape[1], beams.shape[3], beams.shape[2] * beams.shape[3]),
                *(y.shape[2], stride, maps),
                *(ROWS, triton.next_power_of_2(maps), triton.next_power_of_2(weight.shape[0])),
                num_warps=WARPS,
            )
    return y


def _result(beams: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
    """An empty tensor for the result."""
    count, num_beams, length = beams.shape[0], beams.shape[1], beams.shape[4]
    y: Tensor = weight.new_empty((count, num_beams, length // stride, weight.shape[1]))
    return y


_operator = operator("ring_stem", _launched, _result)


def stem(beams: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
    """Beams (N, |B|, C, 2ε + 1, D), weight (3 · C · (2ε + 1) · stride, maps) → gelu of the stem.

    The result is (N, |B|, D/stride, maps), in the precision of the weight.
    """
    y: Tensor = _operator(beams, weight, bias, stride)
    return y


def sizes_fit(values: int, maps: int) -> bool:
    """Whether one program can read all `values` under a position, and hold all maps."""
    return 16 <= values <= MOST and 16 <= maps <= MOST
