"""Packs COIL-100 into a small folder for a borrowed machine (`python tools/pack_coil100.py`).

Writes the images that `staircase` uses as lossless WebP files in the official layout, with values
rounded to multiples of 4, which halves the files. Rounding is the same for every pixel, so it
leaves no grid that could reveal a rotation. NOTE.txt beside them says so, and every result
repeats it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radialbeams.reproduce.effort import FULL
from radialbeams.reproduce.trainings import NOTE
from radialbeams.training.data import load

STEP = 4
TEXT = (
    f"The images were COIL-100's with pixel values rounded to multiples of {STEP}, so that they "
    "fit into a small folder."
)


def rounded(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The nearest multiple of STEP that is a byte."""
    nearest = (pixels.astype(np.int32) + STEP // 2) // STEP * STEP
    return np.minimum(nearest, 256 - STEP).astype(np.uint8)


def pack(data: Path | None, out: Path, train: int = FULL.images, test: int = FULL.held_out) -> int:
    """Writes the folder and returns its size in bytes."""
    folder = out / "coil-100"
    folder.mkdir(parents=True, exist_ok=True)
    total = 0
    for split, limit in (("train", train), ("test", test)):
        images = load("coil100", root=data, split=split, limit=limit)
        for key, pixels in zip(images.keys, images.images.permute(0, 2, 3, 1).numpy(), strict=True):
            path = folder / f"{key}.webp"
            Image.fromarray(rounded(pixels)).save(path, lossless=True, quality=90, exact=True)
            total += path.stat().st_size
    (out / NOTE).write_text(TEXT + "\n", encoding="utf-8")
    return total
