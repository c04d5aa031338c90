"""What a save as JPEG leaves of views, at qualities and block sizes of all kinds, without a file.

On a GPU and inside a captured step, for training.
"""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from radialbeams.training.data.jpeg_blocks import SIDE, with_steps

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
    steps, chroma_steps = _tables(views.device)
    scale = _scale(quality)[:, None, None]
    return with_steps(views, (steps * scale).round(), (chroma_steps * scale).round())


def _scale(quality: Tensor) -> Tensor:
    """How much coarser than STEPS a quality is, as libjpeg reads it."""
    return torch.where(quality < 50, 50 / quality.clamp(min=1), 2 - quality / 50)


@cache
def _tables(device: torch.device) -> tuple[Tensor, Tensor]:
    """Steps of luminance and of chroma, (8, 8) each."""
    steps = torch.tensor(STEPS, dtype=torch.float32).reshape(SIDE, SIDE)
    chroma = torch.full((SIDE, SIDE), 99.0)
    chroma[:4, :4] = torch.tensor(CHROMA_STEPS)
    return steps.to(device), chroma.to(device)
