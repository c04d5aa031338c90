"""JPEG's block grid, averaged away before an image is turned.

The blocks of a stored photo lie along its upright axes and turn with its content, so a network can
read the angle off them. Compressing the image again at shifted grids moves the blocks about, and
their average keeps hardly any of the grid (cycle spinning).
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

GRID = 16  # pixels: a block of the halved colour channels
# Every row and every column of the grid once: fewer would leave a grid of their own.
SHIFTS = tuple((shift, (5 * shift + 3) % GRID) for shift in range(GRID))


def deblocked(image: Image.Image) -> Image.Image:
    """A JPEG image in RGB without its block grid; an image of another format as it is."""
    tables: Any = getattr(image, "quantization", None)
    if not tables:
        return image
    pixels = np.asarray(image.convert("RGB"))  # (H, W, 3)
    height, width = pixels.shape[:2]
    padded = np.pad(pixels, ((GRID, GRID), (GRID, GRID), (0, 0)), "edge")
    total = np.zeros(pixels.shape, np.float32)
    for down, across in SHIFTS:
        shifted = padded[down : down + height + GRID, across : across + width + GRID]
        again = np.asarray(_compressed(Image.fromarray(shifted), tables), np.float32)
        rows, columns = slice(GRID - down, GRID - down + height), slice(GRID - across, None)
        total += again[rows, columns][:, :width]
    return Image.fromarray((total / len(SHIFTS)).round().clip(0, 255).astype(np.uint8))


def _compressed(image: Image.Image, tables: dict[int, list[int]]) -> Image.Image:
    """With the same losses as before; a gray image has one table, which then serves for colour."""
    both = [tables[0], tables.get(1, tables[0])]
    stream = BytesIO()
    image.save(stream, "JPEG", qtables=both, subsampling="4:2:0")
    return Image.open(stream)
