"""What a save as JPEG leaves of views, without a file: 8 × 8 cosines, rounded in YCbCr.

On a GPU and inside a captured step, for training. Chroma is halved, as nearly every encoder does,
and there is no entropy coding, which changes no pixel.
"""

from __future__ import annotations

import math
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

SIDE = 8  # pixels of a block
# The steps that the standard suggests (Annex K), from coarse waves to fine ones, for luminance.
STEPS = (
    *(16, 11, 10, 16, 24, 40, 51, 61),
    *(12, 12, 14, 19, 26, 58, 60, 55),
    *(14, 13, 16, 24, 40, 57, 69, 56),
    *(14, 17, 22, 29, 51, 87, 80, 62),
    *(18, 22, 37, 56, 68, 109, 103, 77),
    *(24, 35, 55, 64, 81, 104, 113, 92),
    *(49, 64, 78, 87, 103, 121, 120, 101),
    *(72, 92, 95, 98, 112, 100, 103, 99),
)
# For chroma; all others are 99.
CHROMA_STEPS = ((17, 18, 24, 47), (18, 21, 26, 66), (24, 26, 56, 99), (47, 66, 99, 99))
TO_YCBCR = (
    (0.299, 0.587, 0.114),
    (-0.168736, -0.331264, 0.5),
    (0.5, -0.418688, -0.081312),
)


# Files are larger or smaller than the views made of them, so their blocks come in any size.
SCALES = (2.0, 1.5, 1.0, 0.75)


def resaved_at_scales(views: Tensor, quality: Tensor) -> Tensor:
    """As `resaved`, a part of the batch at each of SCALES: blocks of 4 to 11 pixels of the view."""
    parts = zip(views.tensor_split(len(SCALES)), quality.tensor_split(len(SCALES)), strict=True)
    return torch.cat([_resaved_at(scale, *part) for scale, part in zip(SCALES, parts, strict=True)])


def _resaved_at(scale: float, views: Tensor, quality: Tensor) -> Tensor:
    size = views.shape[-1]
    stored = round(scale * size)
    if stored == size:
        return resaved(views, quality)
    file = _resized(views, stored).clamp(0, 1)
    return _resized(resaved(file, quality), size).clamp(0, 1)


def _resized(views: Tensor, size: int) -> Tensor:
    return F.interpolate(views, (size, size), mode="bilinear", antialias=True)


def resaved(views: Tensor, quality: Tensor) -> Tensor:
    """(N, C, S, S) in [0, 1] and qualities (N,) in [1, 100] → the views with JPEG's rounding."""
    _, steps, chroma_steps, *_ = _tables(views.device)
    scale = _scale(quality)[:, None, None]
    return with_steps(views, (steps * scale).round(), (chroma_steps * scale).round())


def with_steps(views: Tensor, steps: Tensor, chroma_steps: Tensor) -> Tensor:
    """As `resaved`, by quantization tables (N or 1, 8, 8) of luminance and chroma."""
    size = views.shape[-1]
    border = -size % (2 * SIDE)  # blocks of the halved chroma
    padded = F.pad(views, (0, border, 0, border), mode="replicate")
    if views.shape[1] == 1:
        return _rounded(padded, steps)[..., :size, :size].clamp(0, 1)
    *_, colours, back = _tables(views.device)
    padded = torch.einsum("dc,nchw->ndhw", colours, padded)
    light = _rounded(padded[:, :1], steps)
    chroma = _rounded(F.avg_pool2d(padded[:, 1:], 2), chroma_steps)
    chroma = F.interpolate(chroma, scale_factor=2.0, mode="bilinear")
    made = torch.cat((light, chroma), 1)[..., :size, :size]
    return torch.einsum("dc,nchw->ndhw", back, made).clamp(0, 1)


def _rounded(planes: Tensor, steps: Tensor) -> Tensor:
    """(N, C, H, H), H a multiple of 8: the cosines of each block rounded to its table's steps."""
    cosines = _tables(planes.device)[0]
    count, channels, width = planes.shape[:3]
    blocks = planes.reshape(count, channels, width // SIDE, SIDE, width // SIDE, SIDE)
    waves = torch.einsum("ui,ncribj,vj->ncrubv", cosines, blocks * 255, cosines)
    step = steps.clamp(min=1)[:, None, None, :, None, :]  # (N, 1, 1, 8, 1, 8)
    waves = (waves / step).round() * step
    blocks = torch.einsum("ui,ncrubv,vj->ncribj", cosines, waves, cosines) / 255
    return blocks.flatten(4, 5).flatten(2, 3)


def _scale(quality: Tensor) -> Tensor:
    """How much coarser than STEPS a quality is, as libjpeg reads it."""
    return torch.where(quality < 50, 50 / quality.clamp(min=1), 2 - quality / 50)


@cache
def _tables(device: torch.device) -> tuple[Tensor, ...]:
    """Cosines by frequency and pixel, steps of luminance and of chroma (8, 8 each); colours (3, 3)
    and back."""
    place = torch.arange(SIDE)
    cosines = torch.cos(math.pi * (2 * place + 1) * place[:, None] / (2 * SIDE)) / 2
    cosines[0] /= math.sqrt(2)
    steps = torch.tensor(STEPS, dtype=torch.float32).reshape(SIDE, SIDE)
    chroma = torch.full((SIDE, SIDE), 99.0)
    chroma[:4, :4] = torch.tensor(CHROMA_STEPS)
    colours = torch.tensor(TO_YCBCR)
    tables = cosines, steps, chroma, colours, torch.linalg.inv(colours)
    return tuple(table.to(device) for table in tables)
