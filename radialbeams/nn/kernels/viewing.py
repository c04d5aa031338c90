"""Makes leak-free views of whole images: both matrix products and the disc in one kernel.

The tensor cores take numbers of 11 bits, whether as halves or as TF32, which torch's convolutions
use for the same products. Images in [0, 1] and the weights of a resampling are equally precise as
halves; sums are in single precision.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from radialbeams.nn.kernels.using import device_of


class ViewTile(NamedTuple):
    """What one program does: the columns of a view, from this many rows and columns at a time."""

    rows: int
    along: int
    columns: int
    warps: int
    stages: int  # of loads in flight


# By the rows of a view, at most.
TILES = {
    64: ViewTile(64, 64, 32, 4, 3),
    128: ViewTile(64, 64, 32, 8, 3),
    256: ViewTile(64, 64, 32, 8, 3),
}
LARGEST_VIEW = max(TILES)
# Each program reads a whole image; larger ones need more programs than one image gives.
LARGEST_SIDE = 512
# The programs are used only where their views were compared with those of torch on a GPU (H200,
# Triton 3.6): in these precisions and, with fewer than eight warps, on sides that are multiples of
# 16. On other sides, such a program gave wrong views of halves, or failed; why is not known.
COMPARED = (torch.float16, torch.float32)
ENOUGH_WARPS, MULTIPLE = 8, 16


def fits(square: Tensor, size: int) -> bool:
    """Whether the kernel makes views of this size from squares (N, C, W, W)."""
    side = square.shape[-1]
    if side > LARGEST_SIDE or size > LARGEST_VIEW or square.dtype not in COMPARED:
        return False
    return side % MULTIPLE == 0 or tile_for(size).warps >= ENOUGH_WARPS


def tile_for(size: int) -> ViewTile:
    return TILES[min(most for most in TILES if size <= most)]


@triton.jit
def _viewed(
    images, weights, mask, views,
    channels, side, size, image_step, channel_step, down, right,
    SIZE: tl.constexpr,
    DOWNS: tl.constexpr, RIGHTS: tl.constexpr,  # steps through the image
    ROWS: tl.constexpr, ALONG: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    plane = tl.program_id(0)
    image, channel = plane // channels, plane % channels
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    row = tl.arange(0, SIZE)
    source = images + image.to(tl.int64) * image_step + channel * channel_step
    view = tl.zeros([SIZE, COLUMNS], tl.float32)
    for step_down in range(DOWNS):
        y = step_down * ROWS + tl.arange(0, ROWS)
        across = tl.zeros([ROWS, COLUMNS], tl.float32)
        for step_right in range(RIGHTS):
            x = step_right * ALONG + tl.arange(0, ALONG)
            pixels = tl.load(
                source + y[:, None] * down + x[None, :] * right,
                (y < side)[:, None] & (x < side)[None, :],
                other=0.0,
            ).to(tl.float16)
            weight = tl.load(
                weights + column[None, :] * side + x[:, None],
                (column < size)[None, :] & (x < side)[:, None],
                other=0.0,
            )
            across = tl.dot(pixels, weight, across)
        weight = tl.load(
            weights + row[:, None] * side + y[None, :],
            (row < size)[:, None] & (y < side)[None, :],
            other=0.0,
        )
        view = tl.dot(weight, across.to(tl.float16), view)
    place = row[:, None] * size + column[None, :]
    inside = (row < size)[:, None] & (column < size)[None, :]
    view *= tl.load(mask + place, inside, other=0.0)
    tl.store(views + plane.to(tl.int64) * size * size + place, view, inside)


@torch.library.custom_op("radialbeams::viewed", mutates_args=())
def viewed(images: Tensor, weights: Tensor, mask: Tensor) -> Tensor:
    """(N, C, W, W), halves (S or more, W), mask (S, S) → (N, C, S, S) in single precision."""
    return launch_viewing(images, weights, mask)


@viewed.register_fake
def _views(images: Tensor, weights: Tensor, mask: Tensor) -> Tensor:
    shape = (*images.shape[:2], *mask.shape)
    return torch.empty(shape, dtype=torch.float32, device=images.device)


def launch_viewing(
    images: Tensor, weights: Tensor, mask: Tensor, tile: ViewTile | None = None
) -> Tensor:
    """`viewed` with another tile, for measurements."""
    if images.stride(3) != 1:  # such as channels last, which was not compared in every precision
        images = images.contiguous()
    views: Tensor = _views(images, weights, mask)
    if not views.numel():
        return views
    (count, channels, side), size = images.shape[:3], len(mask)
    tile = tile or tile_for(size)
    with device_of(images):
        _viewed[(count * channels, triton.cdiv(size, tile.columns))](
            *(images, weights.contiguous(), mask.contiguous(), views),
            *(channels, side, size, *images.stride()),
            SIZE=max(16, triton.next_power_of_2(size)),
            DOWNS=triton.cdiv(side, tile.rows),
            RIGHTS=triton.cdiv(side, tile.along),
            ROWS=tile.rows,
            ALONG=tile.along,
            COLUMNS=tile.columns,
            num_warps=tile.warps,
            num_stages=tile.stages,
        )
    return views
