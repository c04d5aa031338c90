"""The quantisation of a JPEG encoder on tensors: the DCT of 8 × 8 blocks in YCbCr, rounded.

Works on batches, on any device. Chroma is subsampled by two, as in nearly every encoder. Entropy
coding is left out, because it does not change pixels.
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
    """Quantises images (N, C, S, S) in [0, 1] with tables (N or 1, 8, 8).

    The first table is for luminance, the second for chroma.
    """
    size = images.shape[-1]
    border = -size % (2 * SIDE)  # to whole blocks of the subsampled chroma
    padded = F.pad(images, (0, border, 0, border), mode="replicate")
    if images.shape[1] == 1:
        return _rounded(padded, steps)[..., :size, :size].clamp(0, 1)
    _, colours, back = _tables(images.device)
    padded = torch.einsum("dc,nchw->ndhw", colours, padded)
    light = _rounded(padded[:, :1], steps)
    chroma = _rounded(F.avg_pool2d(padded[:, 1:], 2), chroma_steps)
    chroma = F.interpolate(chroma, scale_factor=2.0, mode="bilinear")
    quantised = torch.cat((light, chroma), 1)[..., :size, :size]
    return torch.einsum("dc,nchw->ndhw", back, quantised).clamp(0, 1)


def _rounded(planes: Tensor, steps: Tensor) -> Tensor:
    """(N, C, H, H), H a multiple of 8, with each block's DCT coefficients rounded to `steps`."""
    cosines = _tables(planes.device)[0]
    count, channels, width = planes.shape[:3]
    blocks = planes.reshape(count, channels, width // SIDE, SIDE, width // SIDE, SIDE)
    coefficients = torch.einsum("ui,ncribj,vj->ncrubv", cosines, blocks * 255, cosines)
    step = steps.clamp(min=1)[:, None, None, :, None, :]  # (N, 1, 1, 8, 1, 8)
    coefficients = (coefficients / step).round() * step
    blocks = torch.einsum("ui,ncrubv,vj->ncribj", cosines, coefficients, cosines) / 255
    return blocks.flatten(4, 5).flatten(2, 3)


@cache
def _tables(device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """The DCT matrix (8, 8), and the matrices from RGB to YCbCr (3, 3) and back."""
    index = torch.arange(SIDE)
    cosines = torch.cos(math.pi * (2 * index + 1) * index[:, None] / (2 * SIDE)) / 2
    cosines[0] /= math.sqrt(2)
    colours = torch.tensor(TO_YCBCR)
    return cosines.to(device), colours.to(device), torch.linalg.inv(colours).to(device)
