"""What a save as JPEG leaves of views, without a file: 8 × 8 cosines, rounded in YCbCr.

On a GPU and inside a captured step, for training. Chroma is kept at full resolution, and there is
no entropy coding, which changes no pixel.
"""

from __future__ import annotations

import math
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

SIDE = 8  # pixels of a block
# The luminance steps that the standard suggests (Annex K), from coarse waves to fine ones; chroma
# is coarser, and one table of its own would not teach a network more.
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
TO_YCBCR = (
    (0.299, 0.587, 0.114),
    (-0.168736, -0.331264, 0.5),
    (0.5, -0.418688, -0.081312),
)


def resaved(views: Tensor, quality: Tensor) -> Tensor:
    """(N, C, S, S) in [0, 1] and qualities (N,) in [1, 100] → the views with JPEG's rounding."""
    cosines, steps, colours, back = _tables(views.device)
    size = views.shape[-1]
    padded = F.pad(views, (0, -size % SIDE, 0, -size % SIDE), mode="replicate")
    if views.shape[1] == 3:
        padded = torch.einsum("dc,nchw->ndhw", colours, padded)
    count, channels, width = padded.shape[:3]
    blocks = padded.reshape(count, channels, width // SIDE, SIDE, width // SIDE, SIDE)
    waves = torch.einsum("ui,ncribj,vj->ncrubv", cosines, blocks * 255, cosines)
    step = steps[:, None] * _scale(quality)[:, None, None, None, None, None]  # (N, 1, 1, 8, 1, 8)
    step = step.round().clamp(min=1)
    waves = (waves / step).round() * step
    blocks = torch.einsum("ui,ncrubv,vj->ncribj", cosines, waves, cosines) / 255
    made = blocks.flatten(4, 5).flatten(2, 3)[..., :size, :size]
    if views.shape[1] == 3:
        made = torch.einsum("dc,nchw->ndhw", back, made)
    return made.clamp(0, 1)


def _scale(quality: Tensor) -> Tensor:
    """How much coarser than STEPS a quality is, as libjpeg reads it."""
    return torch.where(quality < 50, 50 / quality.clamp(min=1), 2 - quality / 50)


@cache
def _tables(device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The cosines (8, 8) by frequency and pixel, the steps (8, 8), colours (3, 3) and back."""
    place = torch.arange(SIDE)
    cosines = torch.cos(math.pi * (2 * place + 1) * place[:, None] / (2 * SIDE)) / 2
    cosines[0] /= math.sqrt(2)
    steps = torch.tensor(STEPS, dtype=torch.float32).reshape(SIDE, SIDE)
    colours = torch.tensor(TO_YCBCR)
    tables = cosines, steps, colours, torch.linalg.inv(colours)
    return tuple(table.to(device) for table in tables)  # type: ignore[return-value]
