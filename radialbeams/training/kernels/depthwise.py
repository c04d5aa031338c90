"""Triton kernels for the forward and backward pass of a strided depthwise convolution.

Where TensorFlow's padding is uneven, torch first copies the image into a larger one, and its
kernels for a stride of 2 are far slower than the memory. These read the image in place. The tests
compare outputs and gradients with `F.conv2d`.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

PIXELS, CHANNELS = 64, 32  # in the tile of one program
PROGRAMS = 4096

# Images are channels-last, read as rows (N · H · W) of C channels; `first` is how many rows and
# columns of zeros come before the image.


@triton.jit
def _place(pixels, height, width):
    """Flat output pixels → image, row, column."""
    column = pixels % width
    rows = pixels // width
    return rows // height, rows % height, column


@triton.jit
def _forward(
    x,
    weight,
    y,
    total,
    height,
    width,
    out_height,
    out_width,
    channels,
    first,
    STRIDE: tl.constexpr,
    K: tl.constexpr,
    P: tl.constexpr,
    C: tl.constexpr,
):
    pixels = tl.program_id(0) * P + tl.arange(0, P)
    c = tl.program_id(1) * C + tl.arange(0, C)
    n, row, column = _place(pixels, out_height, out_width)
    inside = pixels < total
    channel_mask = c < channels
    acc = tl.zeros([P, C], tl.float32)
    for i in tl.static_range(K):
        for j in tl.static_range(K):
            r, q = row * STRIDE + i - first, column * STRIDE + j - first
            valid = inside & (r >= 0) & (r < height) & (q >= 0) & (q < width)
            start = ((n * height + r) * width + q) * channels
            value = tl.load(
                x + start[:, None] + c[None, :], valid[:, None] & channel_mask[None, :], other=0.0
            )
            tap = tl.load(weight + (i * K + j) * channels + c, channel_mask, other=0.0)
            acc += value.to(tl.float32) * tap.to(tl.float32)[None, :]
    place = pixels * channels
    tl.store(
        y + place[:, None] + c[None, :],
        acc.to(y.dtype.element_ty),
        inside[:, None] & channel_mask[None, :],
    )


@triton.jit
def _towards_input(
    dy,
    weight,
    dx,
    total,
    height,
    width,
    out_height,
    out_width,
    channels,
    first,
    STRIDE: tl.constexpr,
    K: tl.constexpr,
    P: tl.constexpr,
    C: tl.constexpr,
):
    pixels = tl.program_id(0) * P + tl.arange(0, P)  # of the input
    c = tl.program_id(1) * C + tl.arange(0, C)
    n, row, column = _place(pixels, height, width)
    inside = pixels < total
    channel_mask = c < channels
    acc = tl.zeros([P, C], tl.float32)
    for i in tl.static_range(K):
        for j in tl.static_range(K):
            up, across = row + first - i, column + first - j
            r, q = up // STRIDE, across // STRIDE
            valid = inside & (up >= 0) & (across >= 0) & (r < out_height) & (q < out_width)
            if STRIDE > 1:
                valid = valid & (up % STRIDE == 0) & (across % STRIDE == 0)
            start = ((n * out_height + r) * out_width + q) * channels
            value = tl.load(
                dy + start[:, None] + c[None, :], valid[:, None] & channel_mask[None, :], other=0.0
            )
            tap = tl.load(weight + (i * K + j) * channels + c, channel_mask, other=0.0)
            acc += value.to(tl.float32) * tap.to(tl.float32)[None, :]
    place = pixels * channels
    tl.store(
        dx + place[:, None] + c[None, :],
        acc.to(dx.dtype.element_ty),
        inside[:, None] & channel_mask[None, :],
    )


@triton.jit
def _tap(x, n, r, q, height, width, channels, c, channel_mask, valid, grad):
    ok = valid & (q >= 0) & (q < width)
    start = ((n * height + r) * width + q) * channels
    value = tl.load(x + start[:, None] + c[None, :], ok[:, None] & channel_mask[None, :], other=0.0)
    return value.to(tl.float32) * grad


@triton.jit
def _towards_weight(
    x,
    dy,
    partial,
    total,
    chunk,
    height,
    width,
    out_height,
    out_width,
    channels,
    first,
    STRIDE: tl.constexpr,
    K: tl.constexpr,
    P: tl.constexpr,
    C: tl.constexpr,
):
    i = tl.program_id(0)  # the row of taps
    c = tl.program_id(1) * C + tl.arange(0, C)
    part = tl.program_id(2)
    channel_mask = c < channels
    a0 = tl.zeros([P, C], tl.float32)
    a1 = tl.zeros([P, C], tl.float32)
    a2 = tl.zeros([P, C], tl.float32)
    a3 = tl.zeros([P, C], tl.float32)
    a4 = tl.zeros([P, C], tl.float32)
    for begin in range(0, chunk, P):
        pixels = part * chunk + begin + tl.arange(0, P)
        n, row, column = _place(pixels, out_height, out_width)
        r = row * STRIDE + i - first
        valid = (pixels < total) & (r >= 0) & (r < height)
        place = pixels * channels
        grad = tl.load(
            dy + place[:, None] + c[None, :], valid[:, None] & channel_mask[None, :], other=0.0
        )
        grad = grad.to(tl.float32)
        q = column * STRIDE - first
        a0 += _tap(x, n, r, q, height, width, channels, c, channel_mask, valid, grad)
        a1 += _tap(x, n, r, q + 1, height, width, channels, c, channel_mask, valid, grad)
        a2 += _tap(x, n, r, q + 2, height, width, channels, c, channel_mask, valid, grad)
        if K > 3:
            a3 += _tap(x, n, r, q + 3, height, width, channels, c, channel_mask, valid, grad)
            a4 += _tap(x, n, r, q + 4, height, width, channels, c, channel_mask, valid, grad)
    out = partial + (part * K + i) * K * channels + c
    tl.store(out, tl.sum(a0, 0), channel_mask)
    tl.store(out + channels, tl.sum(a1, 0), channel_mask)
    tl.store(out + 2 * channels, tl.sum(a2, 0), channel_mask)
    if K > 3:
        tl.store(out + 3 * channels, tl.sum(a3, 0), channel_mask)
        tl.store(out + 4 * channels, tl.sum(a4, 0), channel_mask)


def _grid(pixels: int, channels: int) -> tuple[int, int]:
    return triton.cdiv(pixels, PIXELS), triton.cdiv(channels, CHANNELS)


def _taps(weight: Tensor) -> Tensor:
    """(C, 1, K, K) → (K · K, C)."""
    return weight.flatten(1).t().contiguous()


class _Depthwise(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, stride: int, first: int, size: tuple[int, int]
    ) -> Tensor:
        n, channels = x.shape[:2]
        shape = (n, channels, *size)
        y = torch.empty(shape, dtype=x.dtype, device=x.device).to(memory_format=torch.channels_last)
        pixels = y.numel() // channels
        sizes = (pixels, *x.shape[2:], *size, channels, first)
        tile = {"STRIDE": stride, "K": weight.shape[-1], "P": PIXELS, "C": CHANNELS}
        _forward[_grid(pixels, channels)](x, _taps(weight), y, *sizes, **tile)
        ctx.save_for_backward(x, weight)
        ctx.stride, ctx.first = stride, first
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        dy = gradients[0].contiguous(memory_format=torch.channels_last)
        dx = torch.empty_like(x, memory_format=torch.channels_last)
        channels, kernel = x.shape[1], weight.shape[-1]
        tile = {"STRIDE": ctx.stride, "K": kernel, "P": PIXELS, "C": CHANNELS}
        sizes = (*x.shape[2:], *dy.shape[2:], channels, ctx.first)
        pixels = x.numel() // channels
        _towards_input[_grid(pixels, channels)](dy, _taps(weight), dx, pixels, *sizes, **tile)
        pixels, blocks = dy.numel() // channels, triton.cdiv(channels, CHANNELS)
        parts = max(1, min(triton.cdiv(pixels, 8 * PIXELS), PROGRAMS // (blocks * kernel)))
        chunk = triton.cdiv(triton.cdiv(pixels, parts), PIXELS) * PIXELS
        parts = triton.cdiv(pixels, chunk)
        partial = torch.empty((parts, kernel * kernel, channels), device=x.device)
        grid = (kernel, blocks, parts)
        _towards_weight[grid](x, dy, partial, pixels, chunk, *sizes, **tile)
        dweight = partial.sum(0).t().reshape(weight.shape).to(weight.dtype)
        return dx, dweight, None, None, None


def depthwise(x: Tensor, weight: Tensor, *, stride: int, before: int, after: int) -> Tensor:
    """(N, C, H, W) channels-last with (C, 1, K, K), K = 3 or 5, zeros around it as named."""
    kernel = weight.shape[-1]
    if kernel not in (3, 5):
        raise ValueError(f"Expected kernels of 3 or 5 pixels; got {kernel}.")
    height, width = ((s + before + after - kernel) // stride + 1 for s in x.shape[2:])
    x = x.contiguous(memory_format=torch.channels_last)
    y: Tensor = _Depthwise.apply(x, weight.to(x.dtype), stride, before, (height, width))
    return y
