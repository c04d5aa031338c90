"""Whether a picture may be a document: a rule so cheap that every photo can be put through it.

Documents have an even ground and sharp strokes on it, with little in between; photos have shades
everywhere. The rule lets few documents pass by and some photos through: the quarter network has
the last word.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

LOOK_AT = 256  # pixels of the longer side
CELL = 4  # pixels
# Of a logistic regression on rendered pages and photos of COCO's training part, half of each
# turned by any angle: `python tools/documents/likeness.py`.
WEIGHTS = (-21.29, -9.89, 6.19, 18.42, -47.34, 2.84)
BIAS = 9.17
LEAST = -1.5  # reached by 97 % of the rendered pages, many of them worn, and by 17 % of the photos


def may_be_document(picture: Image.Image) -> bool:
    """From a picture of any size and mode."""
    return bool(np.dot(WEIGHTS, likeness(picture)) + BIAS >= LEAST)


def likeness(picture: Image.Image) -> NDArray[np.float64]:
    """(6,): shares of even cells, of the commonest gray, of small, middling and large steps."""
    scale = LOOK_AT / max(picture.size)
    if scale <= 0.25:  # a large picture: to less than twice as much first
        picture = picture.reduce(int(0.5 / scale))
    picture = picture if picture.mode == "L" else picture.convert("L")
    if max(picture.size) > LOOK_AT:
        scale = LOOK_AT / max(picture.size)
        size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
        picture = picture.resize(size, Image.Resampling.BOX)
    small = np.asarray(picture)
    spread = _spread_in_cells(small)
    counts = np.bincount(small.ravel(), minlength=256) / small.size
    peak = np.convolve(counts, np.ones(13), "same").max()
    signed = small.astype(np.int16)
    steps = np.abs(np.concatenate((np.diff(signed).ravel(), np.diff(signed, axis=0).ravel())))
    if not steps.size:
        return np.zeros(6)
    even, middling = (steps <= 2).mean(), ((steps > 2) & (steps <= 16)).mean()
    return np.array(
        ((spread <= 4).mean(), (spread <= 8).mean(), peak, even, middling, (steps > 40).mean())
    )


def _spread_in_cells(gray: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Largest minus smallest gray of each cell; of the whole picture if it is smaller than one."""
    height, width = (length // CELL * CELL for length in gray.shape)
    if not height or not width:
        return np.array([gray.max() - gray.min()], np.uint8)
    cells = gray[:height, :width].reshape(height // CELL, CELL, width // CELL, CELL)
    spread: NDArray[np.uint8] = cells.max((1, 3)) - cells.min((1, 3))
    return spread
