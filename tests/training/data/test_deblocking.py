"""Averaging over shifted grids removes JPEG's blocks and keeps the picture."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

from radialbeams.training.data.deblocking import deblocked
from radialbeams.training.data.deblocking_device import deblocked_pixels


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


def test_many_at_once_are_deblocked_as_one_at_a_time() -> None:
    images = [stored(smooth(256)), stored(smooth(256).transpose(Image.Transpose.ROTATE_90), 50)]
    pixels = np.stack([np.asarray(image).transpose(2, 0, 1) for image in images])
    tables = [(tuple(i.quantization[0]), tuple(i.quantization[1])) for i in images]  # type: ignore[attr-defined]
    found = deblocked_pixels(pixels, tables, torch.device("cpu"))
    for image, before, after in zip(images, pixels, found, strict=True):
        one = np.asarray(deblocked(image), np.int16).transpose(2, 0, 1)
        apart = np.abs(after - one).mean()
        assert apart < 0.25 * np.abs(before - one).mean()
        left = blockiness(Image.fromarray(after.transpose(1, 2, 0)))
        assert left == pytest.approx(blockiness(deblocked(image)), abs=0.05)
