"""Averaging over shifted grids removes JPEG's blocks and keeps the picture."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from radialbeams.training.data.deblocking import deblocked


def smooth(size: int = 96) -> Image.Image:
    """A slope with some noise, in which blocks are easy to see."""
    rng = np.random.default_rng(0)
    slope = np.linspace(60, 190, size)[:, None] + np.linspace(-20, 20, size)
    pixels = (slope[..., None] + rng.normal(0, 6, (size, size, 3))).clip(0, 255)
    return Image.fromarray(pixels.astype(np.uint8))


def stored(image: Image.Image, quality: int = 70) -> Image.Image:
    stream = BytesIO()
    image.save(stream, "JPEG", quality=quality)
    return Image.open(stream)


def blockiness(image: Image.Image) -> float:
    """Steps between neighbours at the borders of blocks, against those inside of them."""
    gray = np.asarray(image.convert("L"), np.float64)
    steps = np.abs(np.diff(gray, axis=1)).mean(0)  # (W - 1,)
    border = np.arange(len(steps)) % 8 == 7
    return float(steps[border].mean() / steps[~border].mean())


def test_the_block_grid_disappears() -> None:
    image = stored(smooth(256))
    assert blockiness(image) > 1.5  # else this test would show nothing
    assert blockiness(deblocked(image)) == pytest.approx(1.0, abs=0.03)


def test_the_picture_stays() -> None:
    original = np.asarray(smooth(), np.float64)
    before = np.abs(np.asarray(stored(smooth()), np.float64) - original).mean()
    after = np.abs(np.asarray(deblocked(stored(smooth())), np.float64) - original).mean()
    assert after < 1.1 * before


@pytest.mark.parametrize("size", [(96, 96), (37, 61)])
def test_the_size_stays(size: tuple[int, int]) -> None:
    assert deblocked(stored(smooth().crop((0, 0, *size)))).size == size


def test_a_gray_jpeg_becomes_gray_in_rgb() -> None:
    pixels = np.asarray(deblocked(stored(smooth().convert("L"))))
    assert pixels.shape == (96, 96, 3)
    assert np.abs(np.diff(pixels.astype(int), axis=2)).max() <= 2


def test_an_image_without_blocks_stays_as_it_is() -> None:
    image = smooth()
    assert deblocked(image) is image
