"""Triton kernels for the forward and backward pass of a batch norm followed by ReLU6.

A mobile network spends nearly half of a training step in batch norms, whose general kernels are far
slower than the memory. Here one pass computes the sums and one applies norm and ReLU6 together. The
backward pass reads the input twice and stores no mask. The tests compare every output and gradient
with torch's own.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS, CHANNELS = 64, 32  # of one program's tile in the sums
BLOCK = 2048  # values of one program in elementwise kernels
PROGRAMS = 2048  # about as many as keep every multiprocessor busy


# In all kernels x is (N, C, H, W) channels-last, read as rows (N · H · W) of C channels. C comes
# as C / 8, so that the compiler knows that every row starts at a multiple of 16 bytes.


@triton.jit
def _sums(x, shift, partial, rows, chunk, eighths, P: tl.constexpr, C: tl.constexpr):
    """Per channel, the sum and the sum of squares of x − shift over one chunk of rows."""
    channels = eighths * 8
    c = tl.program_id(0) * C + tl.arange(0, C)
    part = tl.program_id(1)
    channel_mask = c < channels
    around = tl.load(shift + c, channel_mask, other=0.0)
    total = tl.zeros([P, C], tl.float32)
    squares = tl.zeros([P, C], tl.float32)
    for begin in range(0, chunk, P):
        r = part * chunk + begin + tl.arange(0, P)
        inside = (r < rows)[:, None] & channel_mask[None, :]
        place = r[:, None].to(tl.int64) * channels + c[None, :]
        value = tl.load(x + place, inside, other=0.0).to(tl.float32)
        value = tl.where(inside, value - around[None, :], 0.0)
        total += value
        squares += value * value
    out = partial + part * 2 * channels + c
    tl.store(out, tl.sum(total, 0), channel_mask)
    tl.store(out + channels, tl.sum(squares, 0), channel_mask)


@triton.jit
def _total(partial, parts, channels, c, channel_mask, which, P: tl.constexpr, C: tl.constexpr):
    """One of the two sums over all chunks."""
    acc = tl.zeros([P, C], tl.float32)
    for begin in range(0, parts, P):
        part = begin + tl.arange(0, P)
        place = (part[:, None] * 2 + which) * channels + c[None, :]
        acc += tl.load(partial + place, (part < parts)[:, None] & channel_mask[None, :], other=0.0)
    return tl.sum(acc, 0)


@triton.jit
def _statistics(
    partial,
    weight,
    bias,
    running_mean,
    running_variance,
    scale,
    offset,
    mean,
    inverse,
    parts,
    rows,
    eighths,
    epsilon,
    momentum,
    P: tl.constexpr,
    C: tl.constexpr,
):
    """Scale and offset of y = scale · x + offset from the sums; updates the running statistics."""
    channels = eighths * 8
    c = tl.program_id(0) * C + tl.arange(0, C)
    channel_mask = c < channels
    first = _total(partial, parts, channels, c, channel_mask, 0, P, C) / rows
    second = _total(partial, parts, channels, c, channel_mask, 1, P, C) / rows
    before = tl.load(running_mean + c, channel_mask, other=0.0)
    m = first + before  # the running mean was the shift
    variance = tl.maximum(second - first * first, 0.0)
    inv = 1.0 / tl.sqrt(variance + epsilon)
    a = tl.load(weight + c, channel_mask, other=0.0) * inv
    tl.store(scale + c, a, channel_mask)
    tl.store(offset + c, tl.load(bias + c, channel_mask, other=0.0) - m * a, channel_mask)
    tl.store(mean + c, m, channel_mask)
    tl.store(inverse + c, inv, channel_mask)
    tl.store(running_mean + c, before + momentum * (m - before), channel_mask)
    old = tl.load(running_variance + c, channel_mask, other=0.0)
    unbiased = variance * rows / (rows - 1.0)
    tl.store(running_variance + c, old + momentum * (unbiased - old), channel_mask)


@triton.jit
def _apply(x, scale, offset, y, count, eighths, LIMIT: tl.constexpr, B: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    inside = place < count
    c = (place % (eighths * 8)).to(tl.int32)
    value = tl.load(x + place, inside, other=0.0).to(tl.float32)
    value = value * tl.load(scale + c, inside, other=0.0) + tl.load(offset + c, inside, other=0.0)
    if LIMIT:
        value = tl.minimum(tl.maximum(value, 0.0), 6.0)
    tl.store(y + place, value.to(y.dtype.element_ty), inside)


@triton.jit
def _gradient_sums(
    x,
    dy,
    scale,
    offset,
    mean,
    partial,
    rows,
    chunk,
    eighths,
    LIMIT: tl.constexpr,
    P: tl.constexpr,
    C: tl.constexpr,
):
    """Per channel, the sums of the gradient and of the gradient times x − mean."""
    channels = eighths * 8
    c = tl.program_id(0) * C + tl.arange(0, C)
    part = tl.program_id(1)
    channel_mask = c < channels
    a = tl.load(scale + c, channel_mask, other=0.0)[None, :]
    b = tl.load(offset + c, channel_mask, other=0.0)[None, :]
    around = tl.load(mean + c, channel_mask, other=0.0)[None, :]
    plain = tl.zeros([P, C], tl.float32)
    along = tl.zeros([P, C], tl.float32)
    for begin in range(0, chunk, P):
        r = part * chunk + begin + tl.arange(0, P)
        inside = (r < rows)[:, None] & channel_mask[None, :]
        place = r[:, None].to(tl.int64) * channels + c[None, :]
        value = tl.load(x + place, inside, other=0.0).to(tl.float32)
        grad = tl.load(dy + place, inside, other=0.0).to(tl.float32)
        if LIMIT:
            z = value * a + b
            grad = tl.where((z > 0.0) & (z < 6.0), grad, 0.0)
        plain += grad
        along += grad * (value - around)
    out = partial + part * 2 * channels + c
    tl.store(out, tl.sum(plain, 0), channel_mask)
    tl.store(out + channels, tl.sum(along, 0), channel_mask)


@triton.jit
def _gradient_means(
    partial,
    inverse,
    dweight,
    dbias,
    plain,
    along,
    parts,
    rows,
    eighths,
    P: tl.constexpr,
    C: tl.constexpr,
):
    """The gradients of weight and bias from those sums, and the means that dx needs."""
    channels = eighths * 8
    c = tl.program_id(0) * C + tl.arange(0, C)
    channel_mask = c < channels
    gradient = _total(partial, parts, channels, c, channel_mask, 0, P, C)
    centred = _total(partial, parts, channels, c, channel_mask, 1, P, C)
    inv = tl.load(inverse + c, channel_mask, other=0.0)
    tl.store(dbias + c, gradient, channel_mask)
    tl.store(dweight + c, centred * inv, channel_mask)
    tl.store(plain + c, gradient / rows, channel_mask)
    tl.store(along + c, centred * inv * inv / rows, channel_mask)


@triton.jit
def _gradient(
    x,
    dy,
    scale,
    offset,
    mean,
    plain,
    along,
    dx,
    count,
    eighths,
    LIMIT: tl.constexpr,
    B: tl.constexpr,
):
    """dx = scale · (gradient − plain − (x − mean) · along)."""
    place = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    inside = place < count
    c = (place % (eighths * 8)).to(tl.int32)
    a = tl.load(scale + c, inside, other=0.0)
    value = tl.load(x + place, inside, other=0.0).to(tl.float32)
    grad = tl.load(dy + place, inside, other=0.0).to(tl.float32)
    if LIMIT:
        z = value * a + tl.load(offset + c, inside, other=0.0)
        grad = tl.where((z > 0.0) & (z < 6.0), grad, 0.0)
    grad -= tl.load(plain + c, inside, other=0.0)
    grad -= (value - tl.load(mean + c, inside, other=0.0)) * tl.load(along + c, inside, other=0.0)
    tl.store(dx + place, (a * grad).to(dx.dtype.element_ty), inside)


def _chunks(rows: int, blocks: int) -> tuple[int, int]:
    """The number of chunks of rows, and the number of rows in each."""
    parts = max(1, min(triton.cdiv(rows, 4 * ROWS), PROGRAMS // blocks))
    chunk = triton.cdiv(triton.cdiv(rows, parts), ROWS) * ROWS
    return triton.cdiv(rows, chunk), chunk


class _NormReLU6(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        running_mean: Tensor,
        running_variance: Tensor,
        momentum: float,
        epsilon: float,
        limit: bool,
    ) -> Tensor:
        channels, rows = x.shape[1], x.numel() // x.shape[1]
        blocks, eighths = triton.cdiv(channels, CHANNELS), channels // 8
        parts, chunk = _chunks(rows, blocks)
        partial = torch.empty((parts, 2, channels), device=x.device)
        scale, offset, mean, inverse = torch.empty((4, channels), device=x.device).unbind()
        tile = {"P": ROWS, "C": CHANNELS}
        _sums[(blocks, parts)](x, running_mean, partial, rows, chunk, eighths, **tile)
        running = (running_mean, running_variance)
        statistics = (scale, offset, mean, inverse)
        sizes = (parts, rows, eighths, epsilon, momentum)
        _statistics[(blocks,)](partial, weight, bias, *running, *statistics, *sizes, **tile)
        y = torch.empty_like(x, memory_format=torch.channels_last)
        grid = (triton.cdiv(x.numel(), BLOCK),)
        _apply[grid](x, scale, offset, y, x.numel(), eighths, LIMIT=limit, B=BLOCK)
        ctx.save_for_backward(x, scale, offset, mean, inverse)
        ctx.limit = limit
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        x, scale, offset, mean, inverse = ctx.saved_tensors
        dy = gradients[0].contiguous(memory_format=torch.channels_last)
        channels, rows = x.shape[1], x.numel() // x.shape[1]
        blocks, eighths = triton.cdiv(channels, CHANNELS), channels // 8
        parts, chunk = _chunks(rows, blocks)
        partial = torch.empty((parts, 2, channels), device=x.device)
        tile = {"P": ROWS, "C": CHANNELS}
        inputs = (x, dy, scale, offset, mean)
        grid: tuple[int, ...] = (blocks, parts)
        _gradient_sums[grid](*inputs, partial, rows, chunk, eighths, LIMIT=ctx.limit, **tile)
        dweight, dbias, plain, along = torch.empty((4, channels), device=x.device).unbind()
        means = (dweight, dbias, plain, along)
        _gradient_means[(blocks,)](partial, inverse, *means, parts, rows, eighths, **tile)
        dx = torch.empty_like(x, memory_format=torch.channels_last)
        grid = (triton.cdiv(x.numel(), BLOCK),)
        sizes = (x.numel(), eighths)
        _gradient[grid](*inputs, plain, along, dx, *sizes, LIMIT=ctx.limit, B=BLOCK)
        return dx, dweight, dbias, None, None, None, None, None


def norm_relu6(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_variance: Tensor,
    *,
    momentum: float,
    epsilon: float,
    limit: bool,
) -> Tensor:
    """`F.batch_norm` in training mode and, with `limit`, `F.relu6`; C must be a multiple of 8.

    x is (N, C, H, W), channels-last, in any float type; everything else is float32 (C,). The
    running statistics are updated in place.
    """
    if x.shape[1] % 8:
        raise ValueError(f"Expected a multiple of 8 channels; got {x.shape[1]}.")
    x = x.contiguous(memory_format=torch.channels_last)
    statistics = (running_mean, running_variance)
    y: Tensor = _NormReLU6.apply(x, weight, bias, *statistics, momentum, epsilon, limit)
    return y
