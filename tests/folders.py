"""Folders of pictures for the tests of `radialbeams.training.own`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image


def picture(seed: int, size: tuple[int, int] = (64, 64)) -> Image.Image:
    """Soft blobs, unlike those of any other seed."""
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)


def save(image: Image.Image, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)
    return path


def plain_folder(folder: Path, count: int = 12, size: tuple[int, int] = (64, 64)) -> Path:
    for number in range(count):
        save(picture(number, size), folder / f"photo{number}.png")
    return folder
