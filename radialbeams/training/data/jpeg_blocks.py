"""The rounding of a JPEG encoder, without a file: cosines of 8 × 8 blocks, rounded in YCbCr.

Many images at once, on any device. Chroma is halved, as in nearly every encoder. There is no
entropy coding, because it changes no pixel.
"""

from __future__ import annotations

import math
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

SIDE = 8  # pixels of a block
TO_YCBCR = (
    (0.299, 0.587, 0.114),
    (-0.168736, -0.331264, 0.5),
    (0.5, -0.418688, -0.081312),
)


def with_steps(images: Tensor, steps: Tensor, chroma_steps: Tensor) -> Tensor:
    """Rounds images (N, C, S, S) in [0, 1] by quantization tables (N or 1, 8, 8).

    The first table is for luminance, the second for chroma.
    """
    size = images.shape[-1]
    border = -size % (2 * SIDE)  # blocks of the halved chroma
    padded = F.pad(images, (0, border, 0, border), mode="replicate")
    if images.shape[1] == 1:
        return _rounded(padded, steps)[..., :size, :size].clamp(0, 1)
    _, colours, back = _tables(images.device)
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


@cache
def _tables(device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Cosines by frequency and pixel (8, 8), colours to YCbCr (3, 3) and back."""
    place = torch.arange(SIDE)
    cosines = torch.cos(math.pi * (2 * place + 1) * place[:, None] / (2 * SIDE)) / 2
    cosines[0] /= math.sqrt(2)
    colours = torch.tensor(TO_YCBCR)
    return cosines.to(device), colours.to(device), torch.linalg.inv(colours).to(device)
