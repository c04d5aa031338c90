"""JPEG artefacts for training views, computed on tensors: any quality, several block sizes.

Runs on a GPU and inside a captured step.
"""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from radialbeams.training.data.jpeg_blocks import SIDE, with_steps

# The standard's example quantisation table for luminance (Annex K), low frequencies first.
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
# For chroma; the remaining entries are 99.
CHROMA_STEPS = ((17, 18, 24, 47), (18, 21, 26, 66), (24, 26, 56, 99), (47, 66, 99, 99))


# Files are larger or smaller than the views made from them, so their blocks vary in size.
SCALES = (2.0, 1.5, 1.0, 0.75)


def resaved_at_scales(views: Tensor, quality: Tensor) -> Tensor:
    """As `resaved`, a quarter of the batch at each of SCALES: blocks of 4 to 11 view pixels."""
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
    """(N, C, S, S) in [0, 1], qualities (N,) in [1, 100] → the views with JPEG's quantisation."""
    steps, chroma_steps = _tables(views.device)
    scale = _scale(quality)[:, None, None]
    return with_steps(views, (steps * scale).round(), (chroma_steps * scale).round())


def _scale(quality: Tensor) -> Tensor:
    """The factor by which a quality scales STEPS, as in libjpeg."""
    return torch.where(quality < 50, 50 / quality.clamp(min=1), 2 - quality / 50)


@cache
def _tables(device: torch.device) -> tuple[Tensor, Tensor]:
    """The quantisation tables of luminance and chroma, (8, 8) each."""
    steps = torch.tensor(STEPS, dtype=torch.float32).reshape(SIDE, SIDE)
    chroma = torch.full((SIDE, SIDE), 99.0)
    chroma[:4, :4] = torch.tensor(CHROMA_STEPS)
    return steps.to(device), chroma.to(device)
