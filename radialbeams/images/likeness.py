"""Whether a picture may be a document: a rule that is cheap enough to apply to every photo.

Documents have an even background with sharp strokes, and little in between; photos have shades
everywhere. The rule misses few documents and accepts some photos, which the quarter network then
rejects.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops

LOOK_AT = 256  # pixels of the longer side
CELL = 4  # pixels
# From a logistic regression on rendered pages and on photos of COCO's training set in several
# sizes, half of each rotated by random angles: `python tools/documents/likeness.py`.
WEIGHTS = (
    *(-13.14, -6.16, 19.77, 10.99, -71.14, -90.81),
    *(130.0, 38.51, -12.45, -5.8, 67.78, 299.85),
)
BIAS = 10.21
LEAST = -2.0  # reached by 98 % of the rendered pages, many of them worn, and by 12 % of the photos


def may_be_document(picture: Image.Image) -> bool:
    """Whether a picture, of any size and mode, may be a document."""
    return document_likeness(picture) >= LEAST


def document_likeness(picture: Image.Image) -> float:
    """The log odds that a picture is a document rather than a photo, by the cheap rule alone."""
    return float(np.dot(WEIGHTS, likeness(picture)) + BIAS)


def likeness(picture: Image.Image) -> NDArray[np.float64]:
    """(12,): shares of even cells, of the commonest gray and of steps, and products of these."""
    scale = LOOK_AT / max(picture.size)
    if scale <= 0.25:  # a large picture is first reduced by a whole factor, which is fast
        picture = picture.reduce(int(0.5 / scale))
    picture = picture if picture.mode == "L" else picture.convert("L")
    if max(picture.size) > LOOK_AT:
        scale = LOOK_AT / max(picture.size)
        size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
        picture = picture.resize(size, Image.Resampling.BOX)
    spread = _spread_in_cells(np.asarray(picture))
    counts = np.array(picture.histogram()) / (picture.width * picture.height)
    peak = np.convolve(counts, np.ones(13), "same").max()
    steps = _step_counts(picture)
    total = steps.sum()
    if not total:
        return np.zeros(12)
    even, middling, steep = (part.sum() / total for part in (steps[:3], steps[3:17], steps[41:]))
    shares = ((spread <= 4).mean(), (spread <= 8).mean(), peak, even, middling, steep)
    products = (even * steep, middling * steep, peak**2, even**2, middling**2, steep**2)
    return np.array((*shares, *products))


def _step_counts(gray: Image.Image) -> NDArray[np.int64]:
    """(256,): how often each difference of two neighbouring pixels occurs.

    Pillow counts in a third of the time that numpy needs.
    """
    width, height = gray.size
    counts = np.zeros(256, np.int64)
    for across, down in ((1, 0), (0, 1)):
        if width > across and height > down:
            ahead = gray.crop((across, down, width, height))
            behind = gray.crop((0, 0, width - across, height - down))
            counts += ImageChops.difference(ahead, behind).histogram()
    return counts


def _spread_in_cells(gray: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Range of the gray values in each cell; of the whole picture if it is smaller than a cell."""
    height, width = (length // CELL * CELL for length in gray.shape)
    if not height or not width:
        return np.array([gray.max() - gray.min()], np.uint8)
    rows = gray[:height, :width].reshape(height // CELL, CELL, width)
    # Columns one by one: `max` along a short last axis would take several times as long.
    highest, lowest = rows.max(1), rows.min(1)
    high = np.maximum.reduce([highest[:, k::CELL] for k in range(CELL)])
    low = np.minimum.reduce([lowest[:, k::CELL] for k in range(CELL)])
    spread: NDArray[np.uint8] = high - low
    return spread
