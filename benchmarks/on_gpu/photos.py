"""Views of photographs, to compare the precisions of a network on: noise is far from all of them.

They are cut at random from the pictures that come with the package, so they need no data.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

import radialbeams
from radialbeams.nn.rotation import disc

PICTURES = sorted((Path(radialbeams.__file__).parent / "pictures").glob("*.webp"))


def photos(count: int, channels: int, side: int, seed: int = 0) -> Tensor:
    """(N, C, S, S) in [0, 1], float32: squares of random places and sizes, within the disc."""
    rng = np.random.default_rng(seed)
    pictures = [_picture(path) for path in PICTURES]
    views = [_cut(pictures[number % len(pictures)], side, rng) for number in range(count)]
    return (torch.cat(views)[:, :channels] * disc(side)).clamp(0, 1)


@functools.cache
def _picture(path: Path) -> Tensor:
    with Image.open(path) as picture:
        pixels = np.array(picture.convert("RGB"))
    return torch.from_numpy(pixels).permute(2, 0, 1)[None] / 255  # (1, 3, H, W)


def _cut(picture: Tensor, side: int, rng: np.random.Generator) -> Tensor:
    """One square of it, turned by some number of quarters."""
    height, width = picture.shape[-2:]
    length = int(min(height, width) * rng.uniform(0.4, 1))
    top, left = rng.integers(height - length + 1), rng.integers(width - length + 1)
    square = picture[..., top : top + length, left : left + length].rot90(rng.integers(4), (-2, -1))
    return F.interpolate(square, (side, side), mode="bilinear", antialias=True)
