"""Samples images bilinearly where an affine map or a fixed grid says, without a grid in memory.

torch's way takes a copy of the images in single precision, a grid of two numbers per pixel, and a
copy of the result in the precision of the images; together they move six times the bytes of the
images. Here the positions are computed in registers, in single precision as before. A map of whole
numbers gives whole positions, so images that are only moved by pixels are exact.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from radialbeams.nn.kernels.using import device_of

# The pixels of one program, and those of one warp: neighbours in both directions, because the
# pixels of a row lie in as many rows of a rotated image as the row is long.
WIDE, TALL = 32, 8
ACROSS = 8  # columns of a warp's 32 pixels
WARPS = 4
SAMPLES, SAMPLE_WARPS = 256, 4  # of one program, on beams
FURTHEST = 2**31  # bytes and more need offsets of 64 bits


@triton.jit
def _corners(x, y, height, width, wanted):
    """The column and row of the first of four pixels, which of them count, and the fractions.

    A pixel with weight 0 does not count: it may be infinite.
    """
    # From one pixel outside on, everything is outside; far positions would not fit an integer.
    x = tl.minimum(tl.maximum(x, -1.0), width * 1.0)
    y = tl.minimum(tl.maximum(y, -1.0), height * 1.0)
    left, top = tl.floor(x), tl.floor(y)
    right_share, lower_share = x - left, y - top
    column, row = left.to(tl.int32), top.to(tl.int32)
    at_left = wanted & (column >= 0) & (column < width)
    at_right = wanted & (column + 1 < width) & (right_share > 0)
    upper = (row >= 0) & (row < height)
    lower = (row + 1 < height) & (lower_share > 0)
    return column, row, right_share, lower_share, at_left, at_right, upper, lower


@triton.jit
def _mixed(
    plane, place, down, right, w00, w10, w01, w11, at00, at10, at01, at11
):  # the places of one channel → its values in single precision
    value = tl.load(plane + place, at00, other=0.0).to(tl.float32) * w00
    value += tl.load(plane + place + right, at10, other=0.0).to(tl.float32) * w10
    value += tl.load(plane + place + down, at01, other=0.0).to(tl.float32) * w01
    value += tl.load(plane + place + down + right, at11, other=0.0).to(tl.float32) * w11
    return value


# Known to be multiples of 16, they would save nothing, and each case would be compiled. If
# `out_right` were known to be 1, a thread would write eight neighbours at once; it would then also
# read for eight neighbours, and a warp's reads would be far apart.
GENERAL = [
    *("height", "width", "out_height", "out_width", "image_step", "channel_step", "down"),
    *("out_image_step", "out_channel_step", "out_down", "out_right"),
]


@triton.jit(do_not_specialize=GENERAL)
def _turned(
    pixels,
    origin,
    out,
    height,
    width,
    out_height,
    out_width,
    image_step,
    channel_step,
    down,
    right,
    out_image_step,
    out_channel_step,
    out_down,
    out_right,
    fill,
    CHANNELS: tl.constexpr,
    FILLED: tl.constexpr,
    WIDE: tl.constexpr,
    TALL: tl.constexpr,
    ACROSS: tl.constexpr,
):
    across, tiles = tl.cdiv(out_width, WIDE), tl.cdiv(out_height, TALL)
    program = tl.program_id(0)
    tile_x, rest = program % across, program // across
    tile_y, image = rest % tiles, rest // tiles
    lane = tl.arange(0, WIDE * TALL)
    # Blocks of 32 pixels, ACROSS of them side by side, tile the pixels of a program.
    block, within = lane // 32, lane % 32
    u = tile_x * WIDE + block % (WIDE // ACROSS) * ACROSS + within % ACROSS
    v = tile_y * TALL + block // (WIDE // ACROSS) * (32 // ACROSS) + within // ACROSS
    wanted = (u < out_width) & (v < out_height)
    own = origin + image * 6
    a, b, c = tl.load(own), tl.load(own + 1), tl.load(own + 2)
    d, e, f = tl.load(own + 3), tl.load(own + 4), tl.load(own + 5)
    x = a * u + (b * v + c)
    y = d * u + (e * v + f)
    column, row, p, q, at_left, at_right, upper, lower = _corners(x, y, height, width, wanted)
    w00, w10, w01, w11 = (1 - p) * (1 - q), p * (1 - q), (1 - p) * q, p * q
    at00, at10, at01, at11 = at_left & upper, at_right & upper, at_left & lower, at_right & lower
    place = row * down + column * right
    written = v * out_down + u * out_right
    source = pixels + image.to(tl.int64) * image_step
    target = out + image.to(tl.int64) * out_image_step
    for channel in tl.static_range(CHANNELS):
        value = _mixed(
            *(source + channel * channel_step, place, down, right),
            *(w00, w10, w01, w11, at00, at10, at01, at11),
        )
        if FILLED:
            covered = tl.where(at00, w00, 0.0) + tl.where(at10, w10, 0.0)
            covered += tl.where(at01, w01, 0.0) + tl.where(at11, w11, 0.0)
            value += fill * (1 - covered)
        tl.store(
            target + channel * out_channel_step + written, value.to(out.dtype.element_ty), wanted
        )


@triton.jit
def _sampled(
    images, grid, out, size, samples, image_step, channel_step, down, right,
    CHANNELS: tl.constexpr, SAMPLES: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(samples, SAMPLES)
    image, block = tl.program_id(0) // blocks, tl.program_id(0) % blocks
    sample = block * SAMPLES + tl.arange(0, SAMPLES)
    wanted = sample < samples
    half = (size - 1) * 0.5
    x = (tl.load(grid + 2 * sample, wanted, other=0.0) + 1) * half
    y = (tl.load(grid + 2 * sample + 1, wanted, other=0.0) + 1) * half
    column, row, p, q, at_left, at_right, upper, lower = _corners(x, y, size, size, wanted)
    w00, w10, w01, w11 = (1 - p) * (1 - q), p * (1 - q), (1 - p) * q, p * q
    at00, at10, at01, at11 = at_left & upper, at_right & upper, at_left & lower, at_right & lower
    place = row * down + column * right
    source = images + image.to(tl.int64) * image_step
    target = out + image.to(tl.int64) * (CHANNELS * samples)
    for channel in tl.static_range(CHANNELS):
        value = _mixed(
            *(source + channel * channel_step, place, down, right),
            *(w00, w10, w01, w11, at00, at10, at01, at11),
        )
        tl.store(target + channel * samples + sample, value.to(out.dtype.element_ty), wanted)


@torch.library.custom_op("radialbeams::turned", mutates_args=())
def turned(pixels: Tensor, origin: Tensor, height: int, width: int, fill: float) -> Tensor:
    """(N, C ≤ 4, h, w), (N, 2, 3) → (N, C, height, width): bilinear, `fill` outside the image.

    `origin` maps points of the new frame to their sources, both in pixel indices as (x, y).
    """
    return launch_turning(pixels, origin, height, width, fill)


@turned.register_fake
def _(pixels: Tensor, origin: Tensor, height: int, width: int, fill: float) -> Tensor:
    return _frame(pixels, height, width)


def launch_turning(
    pixels: Tensor,
    origin: Tensor,
    height: int,
    width: int,
    fill: float,
    *,
    wide: int = WIDE,
    tall: int = TALL,
    across: int = ACROSS,
    warps: int = WARPS,
) -> Tensor:
    """`turned` with tiles of other sizes, for measurements."""
    out = _frame(pixels, height, width)
    if not out.numel():
        return out
    pixels = _within_reach(pixels)
    tiles = triton.cdiv(width, wide) * triton.cdiv(height, tall)
    with device_of(pixels):
        _turned[(tiles * pixels.shape[0],)](
            *(pixels, origin.float().contiguous(), out, *pixels.shape[2:], height, width),
            *(*pixels.stride(), *out.stride(), float(fill)),
            CHANNELS=pixels.shape[1],
            FILLED=fill != 0,
            WIDE=wide,
            TALL=tall,
            ACROSS=across,
            num_warps=warps,
        )
    return out


def _frame(pixels: Tensor, height: int, width: int) -> Tensor:
    """An empty result in the memory format of the images."""
    last = pixels.is_contiguous(memory_format=torch.channels_last) and not pixels.is_contiguous()
    layout = torch.channels_last if last else torch.contiguous_format
    shape = (*pixels.shape[:2], height, width)
    return torch.empty(shape, dtype=pixels.dtype, device=pixels.device, memory_format=layout)


def _within_reach(pixels: Tensor) -> Tensor:
    """The same, copied if an image spans more memory than the kernel's offsets can express."""
    sides = zip(pixels.shape[1:], pixels.stride()[1:], strict=True)
    span = sum((side - 1) * step for side, step in sides) * pixels.element_size()
    return pixels if span < FURTHEST else pixels.contiguous()


@torch.library.custom_op("radialbeams::sampled", mutates_args=())
def sampled(images: Tensor, grid: Tensor) -> Tensor:
    """(N, C ≤ 4, W, W), (R, D, 2) in [−1, 1] → (N, C, R, D), bilinearly.

    −1 and 1 are the middles of the outer pixels.
    """
    count, channels, size = images.shape[:3]
    out: Tensor = _samples(images, grid)
    if not out.numel():
        return out
    images, samples = _within_reach(images), grid.shape[0] * grid.shape[1]
    with device_of(images):
        _sampled[(count * triton.cdiv(samples, SAMPLES),)](
            *(images, grid.float().contiguous(), out, size, samples, *images.stride()),
            CHANNELS=channels,
            SAMPLES=SAMPLES,
            num_warps=SAMPLE_WARPS,
        )
    return out


@sampled.register_fake
def _samples(images: Tensor, grid: Tensor) -> Tensor:
    shape = (*images.shape[:2], *grid.shape[:2])
    return torch.empty(shape, dtype=images.dtype, device=images.device)
