"""A depthwise convolution with the activations around it as one Triton kernel, for inference.

It reads the output of the expansion before its bias and ReLU6, and applies them while it reads;
then it convolves, and applies the second bias and ReLU6 before it writes. Layer by layer, the
widest features of the network are read and written three times; here once.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

PIXELS, CHANNELS = 64, 32  # of one program's tile


@triton.jit
def _relu6(x):
    return tl.minimum(tl.maximum(x, 0.0), 6.0)


@triton.jit
def _convolve(
    x,
    before_bias,
    weight,
    after_bias,
    y,
    total,
    height,
    width,
    out_height,
    out_width,
    channels,
    first,
    ACTIVATE: tl.constexpr,
    STRIDE: tl.constexpr,
    K: tl.constexpr,
    P: tl.constexpr,
    C: tl.constexpr,
):
    pixels = tl.program_id(0).to(tl.int64) * P + tl.arange(0, P)  # of the output
    c = tl.program_id(1) * C + tl.arange(0, C)
    column = pixels % out_width
    row = (pixels // out_width) % out_height
    image = pixels // (out_width * out_height)
    inside = pixels < total
    known = c < channels
    shift = tl.load(before_bias + c, known, other=0.0).to(tl.float32)
    acc = tl.zeros([P, C], tl.float32)
    for i in tl.static_range(K):
        for j in tl.static_range(K):
            r, q = row * STRIDE + i - first, column * STRIDE + j - first
            seen = inside & (r >= 0) & (r < height) & (q >= 0) & (q < width)
            valid = seen[:, None] & known[None, :]
            start = ((image * height + r) * width + q) * channels
            value = tl.load(x + start[:, None] + c[None, :], valid, other=0.0).to(tl.float32)
            if ACTIVATE:  # zeros around the image stay zeros
                value = tl.where(valid, _relu6(value + shift[None, :]), 0.0)
            tap = tl.load(weight + (i * K + j) * channels + c, known, other=0.0)
            acc += value * tap.to(tl.float32)[None, :]
    acc = _relu6(acc + tl.load(after_bias + c, known, other=0.0).to(tl.float32)[None, :])
    place = pixels * channels
    tl.store(
        y + place[:, None] + c[None, :],
        acc.to(y.dtype.element_ty),
        inside[:, None] & known[None, :],
    )


@torch.library.custom_op("radialbeams::depthwise_relu6", mutates_args=())
def depthwise(
    x: Tensor,
    before_bias: Tensor,
    taps: Tensor,
    after_bias: Tensor,
    stride: int,
    first: int,
    activate: bool,
) -> Tensor:
    """(N, H, W, C) → (N, ⌈H/stride⌉, ⌈W/stride⌉, C), with `first` zeros before the image.

    `taps` are (K · K, C). With `activate`, bias and ReLU6 come before the convolution as well.
    """
    count, height, width, channels = x.shape
    size = -(-height // stride), -(-width // stride)
    y = x.new_empty((count, *size, channels))
    total = count * size[0] * size[1]
    _convolve[triton.cdiv(total, PIXELS), triton.cdiv(channels, CHANNELS)](
        x,
        before_bias,
        taps,
        after_bias,
        y,
        total,
        height,
        width,
        *size,
        channels,
        first,
        ACTIVATE=activate,
        STRIDE=stride,
        K=3 if len(taps) == 9 else 5,
        P=PIXELS,
        C=CHANNELS,
    )
    return y


@depthwise.register_fake
def _(
    x: Tensor,
    before_bias: Tensor,
    taps: Tensor,
    after_bias: Tensor,
    stride: int,
    first: int,
    activate: bool,
) -> Tensor:
    count, height, width, channels = x.shape
    return x.new_empty((count, -(-height // stride), -(-width // stride), channels))
