"""Removes JPEG's block grid from an image before it is rotated.

The blocks of a stored photo are aligned with its upright axes and rotate with its content, so a
network can read the angle from them. The image is compressed again at shifted grids, and the
results are averaged (cycle spinning). One pass with the quantisation of the file is not enough: a
network that had learned the grid still found it. After two passes with coarser quantisation, it did
no better than on images that never had a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

GRID = 16  # pixels: a block of the half-size chroma channels
# Every row and column offset of the grid once; fewer would leave a grid of their own.
SHIFTS = tuple((shift, (5 * shift + 3) % GRID) for shift in range(GRID))
COARSER = (2.0, 1.5)  # quantisation steps of each pass, as multiples of the file's
LARGEST_STEP = 255  # in an eight-bit quantisation table

Pixels = NDArray[np.uint8]  # (H, W, 3)
Tables = list[list[int]]


def deblocked(image: Image.Image) -> Image.Image:
    """A JPEG image in RGB without its block grid; an image of another format unchanged."""
    tables: Any = getattr(image, "quantization", None)
    if not tables:
        return image
    pixels = np.asarray(image.convert("RGB"))
    for factor in COARSER:
        pixels = _averaged(pixels, _coarser(tables, factor))
    return Image.fromarray(pixels)


def _averaged(pixels: Pixels, tables: Tables) -> Pixels:
    """The mean of the image compressed at each of SHIFTS."""
    height, width = pixels.shape[:2]
    padded = np.pad(pixels, ((GRID, GRID), (GRID, GRID), (0, 0)), "edge")
    total = np.zeros(pixels.shape, np.float32)
    for down, across in SHIFTS:
        shifted = padded[down : down + height + GRID, across : across + width + GRID]
        compressed = np.asarray(_compressed(Image.fromarray(shifted), tables))
        rows, columns = slice(GRID - down, GRID - down + height), slice(GRID - across, None)
        total += compressed[rows, columns][:, :width]
    return (total / len(SHIFTS)).round().clip(0, 255).astype(np.uint8)


def _coarser(tables: dict[int, list[int]], factor: float) -> Tables:
    """Luminance and chroma tables; the one table of a gray image serves for both."""
    both = [tables[0], tables.get(1, tables[0])]
    return [coarser(table, factor) for table in both]


def coarser(table: Sequence[int], factor: float) -> list[int]:
    return [min(LARGEST_STEP, round(factor * step)) for step in table]


def _compressed(image: Image.Image, tables: Tables) -> Image.Image:
    stream = BytesIO()
    image.save(stream, "JPEG", qtables=tables, subsampling="4:2:0")
    return Image.open(stream)
