"""The quarter network's view of a levelled page: a square with enough pixels to see text.

Uniform margins are cut away, long pages lose their ends, and the rest is scaled onto a square whose
centre is the content's. All of it commutes with quarter turns of the page.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

LONGEST = 1.6  # of the short side; what is longer is cut at both ends
LEAST_KEPT = 0.5  # of each side, however empty the page is
MARGIN = 0.02  # kept around the content, as a share of the page's sides
EVEN = 10.0  # gray values; a row whose pixels lie this close together is empty
LOOK_AT = 256  # pixels of the longer side, to find the margins

Gray = NDArray[np.uint8]


def page_view(page: Image.Image, size: int, *, trim: bool = True) -> Gray:
    """(size, size) gray pixels of a levelled page in any of its four quarter turns."""
    page = page if page.mode == "L" else page.convert("L")
    box = content_box(page) if trim else (0.0, 0.0, float(page.width), float(page.height))
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    width, height = box[2] - box[0], box[3] - box[1]
    side = min(max(width, height), LONGEST * min(width, height))
    return _square(page, x, y, side, size)


def _square(page: Image.Image, x: float, y: float, side: float, size: int) -> Gray:
    """The square of that centre and side, scaled to `size`; outside the page is its ground."""
    left, top = x - side / 2, y - side / 2
    inside = (
        max(left, 0.0),
        max(top, 0.0),
        min(left + side, float(page.width)),
        min(top + side, float(page.height)),
    )
    scale = size / side
    place = [round((inside[k] - (left, top)[k % 2]) * scale) for k in range(4)]
    wanted = max(1, place[2] - place[0]), max(1, place[3] - place[1])
    part = page.resize(wanted, Image.Resampling.BICUBIC, box=inside, reducing_gap=2.0)
    if wanted == (size, size):
        return np.asarray(part)
    view = Image.new("L", (size, size), ground(part))
    view.paste(part, (place[0], place[1]))
    return np.asarray(view)


def ground(page: Image.Image) -> int:
    """The gray of the page's rim."""
    pixels = np.asarray(page)
    rim = np.concatenate((pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]))
    return int(np.median(rim))


def content_box(page: Image.Image) -> tuple[float, float, float, float]:
    """(left, top, right, bottom) of the page without its empty margins."""
    scale = max(page.size) / LOOK_AT
    small = page if scale <= 1 else page.resize(
        (max(1, round(page.width / scale)), max(1, round(page.height / scale))),
        Image.Resampling.BOX,
    )  # fmt: skip
    pixels = np.asarray(small)
    top, bottom = _filled(pixels)
    left, right = _filled(pixels.T)
    across, down = page.width / small.width, page.height / small.height
    x0, x1 = _widened(left * across, right * across, page.width)
    y0, y1 = _widened(top * down, bottom * down, page.height)
    return x0, y0, x1, y1


def _filled(pixels: Gray) -> tuple[int, int]:
    """First row that is not empty, and one after the last; all rows where every one is."""
    spread = pixels.max(axis=1).astype(np.int16) - pixels.min(axis=1)
    rows = np.flatnonzero(spread > EVEN)
    return (int(rows[0]), int(rows[-1]) + 1) if rows.size else (0, len(pixels))


def _widened(first: float, last: float, length: int) -> tuple[float, float]:
    """With a margin, at least LEAST_KEPT long, and within the page."""
    first, last = first - MARGIN * length, last + MARGIN * length
    lacking = max(0.0, LEAST_KEPT * length - (last - first)) / 2
    return max(0.0, first - lacking), min(float(length), last + lacking)
