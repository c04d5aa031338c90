"""Pictures in, views for a model, the picture turned back.

Convention: angles here are degrees, counter-clockwise as displayed, like everywhere at the edges.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

Source = str | Path | Image.Image

_QUARTERS = {
    90: Image.Transpose.ROTATE_90,
    180: Image.Transpose.ROTATE_180,
    270: Image.Transpose.ROTATE_270,
}


def open_rgb(source: Source) -> Image.Image:
    """A picture as it is meant to be seen: EXIF orientation applied, alpha laid on black."""
    picture = source if isinstance(source, Image.Image) else Image.open(source)
    picture = ImageOps.exif_transpose(picture)
    if picture.mode == "F":
        raise ValueError("Its pixels are floats of unknown range; save it with 8 or 16 bits.")
    if picture.mode.startswith("I"):  # 16 bits, which Pillow's own conversion would clip to 8
        values = np.asarray(picture).clip(0, 65535).astype(np.uint32)
        picture = Image.fromarray(((values + 128) // 257).astype(np.uint8))
    if picture.has_transparency_data:
        clear = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", clear.size, "black"), clear)
    return picture.convert("RGB")


def centre_square(picture: Image.Image) -> Image.Image:
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    return picture.crop((left, top, left + side, top + side))


def paper_view(picture: Image.Image, view_size: int) -> NDArray[np.float32]:
    """(3, S, S) in [0, 1]: the centred square, taken for the paper's padded and rotated X_θ."""
    view = centre_square(picture).resize((view_size, view_size), Image.Resampling.LANCZOS)
    return np.asarray(view, dtype=np.float32).transpose(2, 0, 1) / np.float32(255)


# The leak-free view is made twice in this project, in torch for training and here for files; a
# test holds the two together. Its numbers: what a view shows of the parent's half-width, its
# largest side as a share of the parent's, and the sharpness of torch's bicubic kernel.
REACH, LARGEST_VIEW, BICUBIC = 0.9, 0.45, -0.75


def leakfree_view(picture: Image.Image, parent_size: int, view_size: int) -> NDArray[np.float32]:
    """(3, S, S) in [0, 1]: the disc in the middle of the centred square, on black."""
    square = centre_square(picture)
    if square.width != parent_size:
        square = square.resize(
            (parent_size, parent_size), Image.Resampling.LANCZOS, reducing_gap=3.0
        )
    parent = np.asarray(square, dtype=np.float32).transpose(2, 0, 1) / np.float32(255)
    matrix, disc = _leakfree_geometry(parent_size, view_size)
    return matrix @ parent @ matrix.T * disc


@cache
def _leakfree_geometry(
    parent_size: int, view_size: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Blur and bicubic resample of one axis as one matrix (S, W), and the disc (S, S).

    Nothing is turned here, so both axes separate and the whole view is two matrix products.
    """
    offsets = np.arange(view_size) - (view_size - 1) / 2
    positions = (parent_size - 1) / 2 + offsets * REACH * parent_size / view_size
    index = np.arange(parent_size)
    resample = np.zeros((view_size, parent_size))
    for tap in range(-1, 3):
        pixel = np.floor(positions) + tap
        weight = _bicubic_weight(np.abs(positions - pixel))
        resample += weight[:, None] * (np.clip(pixel, 0, parent_size - 1)[:, None] == index)
    sigma = int(LARGEST_VIEW * parent_size) / view_size
    distance = np.abs(index[:, None] - index)
    gauss = np.where(distance > 4 * sigma, 0, np.exp(-(distance**2) / (2 * sigma**2)))
    matrix = resample @ (gauss / gauss.sum(1, keepdims=True))
    disc = offsets**2 + offsets[:, None] ** 2 <= (view_size / 2) ** 2
    return matrix.astype(np.float32), disc.astype(np.float32)


def _bicubic_weight(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Keys' kernel at 0 ≤ distance ≤ 2."""
    a, d = BICUBIC, distance
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * (d**3 - 5 * d**2 + 8 * d - 4)
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def turn(picture: Image.Image, degrees: float, fill: str = "black") -> Image.Image:
    """The picture turned counter-clockwise on its own canvas, once; quarter turns move pixels."""
    quarter = _QUARTERS.get(round(degrees) % 360) if degrees == round(degrees) else None
    if quarter is not None and (quarter == _QUARTERS[180] or picture.width == picture.height):
        return picture.transpose(quarter)
    return picture.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=fill)
