"""What a model sees of a picture: its square view. numpy only.

Convention: a view's `turn` is degrees, counter-clockwise as displayed, about its middle.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Floats = NDArray[np.float32]


def view(
    picture: Image.Image,
    protocol: Mapping[str, Any],
    view_size: int,
    channels: int,
    turn: float = 0.0,
) -> Floats:
    """(C, S, S) in [0, 1] of an RGB picture, made as the model's card says."""
    if channels == 1:
        picture = picture.convert("L").convert("RGB")
    if protocol["name"] == "leakfree":
        made = leakfree_view(picture, protocol["parent_size"], view_size)
    else:
        made = paper_view(picture, view_size)
    return made[:channels]


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
