"""The quarter network's views of a levelled page: squares with enough pixels to see text.

The frame around a page and its empty margins are cut away, long pages lose their ends, and the
rest is scaled onto a square whose centre is the content's. Close views show about half as much, at
the places with the most detail. All of it commutes with quarter turns of the page.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from PIL import Image

LONGEST = 1.6  # of the short side; what is longer is cut at both ends
LEAST_KEPT = 0.5  # of each side, however empty the page is
MARGIN = 0.02  # kept around the content, as a share of the page's sides
EVEN = 10.0  # gray values; a row whose pixels lie this close together is empty
UNLIKE = 40.0  # gray values by which a frame differs from the page that it surrounds
LOOK_AT = 256  # pixels of the longer side, to find the margins
ENLARGED = 2.5  # times at most; larger letters than a screen ever shows help nobody
CLOSE = 0.5  # of the content's longer side: what a close view shows
CLIP = 48.0  # gray values; the edge of a picture must not outweigh a paragraph

Gray = NDArray[np.uint8]
Box = tuple[float, float, float, float]  # left, top, right, bottom


def page_view(page: Image.Image, size: int, box: Box | None = None, *, trim: bool = True) -> Gray:
    """(size, size) gray pixels of a levelled page in any of its four quarter turns.

    `box` is the page's content box, where it is known already.
    """
    page = page if page.mode == "L" else page.convert("L")
    left, top, right, bottom = (box or content_box(page)) if trim else _all_of(page)
    width, height = right - left, bottom - top
    side = min(max(width, height), LONGEST * min(width, height))
    return _square(page, (left + right) / 2, (top + bottom) / 2, side, size)


def close_views(page: Image.Image, size: int, count: int, box: Box | None = None) -> Iterator[Gray]:
    """At most `count` views of (size, size), of the places with the most detail, best first."""
    page = page if page.mode == "L" else page.convert("L")
    side, centres = close_places(page, count, box)
    return (_square(page, x, y, side, size) for x, y in centres)


def close_places(
    page: Image.Image, count: int, box: Box | None = None
) -> tuple[float, list[tuple[float, float]]]:
    """The side of the squares that close views show, and their centres (x, y)."""
    box = box or content_box(page)
    short, long = sorted((box[2] - box[0], box[3] - box[1]))
    side = CLOSE * long if long <= LONGEST * short else short
    return side, _densest(page, box, side, count)


def _square(page: Image.Image, x: float, y: float, side: float, size: int) -> Gray:
    """The square of that centre and side, scaled to `size`; outside the page is its ground."""
    side = max(side, size / ENLARGED)
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
    return int(np.median(_rim(np.asarray(page))))


def _rim(pixels: Gray) -> Gray:
    return np.concatenate((pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]))


# --- what of the page is shown ---


def content_box(page: Image.Image) -> Box:
    """The page without a frame around it and without its empty margins."""
    scale = max(page.size) / LOOK_AT
    small = page if scale <= 1 else page.resize(
        (max(1, round(page.width / scale)), max(1, round(page.height / scale))),
        Image.Resampling.BOX,
    )  # fmt: skip
    pixels = np.asarray(small)
    x, y, pixels = _without_frame(pixels)
    left, right = _widened(*_filled(pixels.T), pixels.shape[1])
    top, bottom = _widened(*_filled(pixels), pixels.shape[0])
    across, down = page.width / small.width, page.height / small.height
    return (x + left) * across, (y + top) * down, (x + right) * across, (y + bottom) * down


def _without_frame(pixels: Gray) -> tuple[int, int, Gray]:
    """Left and top of the page inside an even frame, and its pixels; all of them without one.

    A page that was turned and levelled again lies in a frame of the fill colour.
    """
    (top, bottom), (left, right) = _filled(pixels), _filled(pixels.T)
    if min(bottom - top, right - left) < 12:
        return 0, 0, pixels
    page = pixels[top:bottom, left:right]
    # The outermost pixels mix the page with its frame, so that no margin would look empty.
    inner = page[2:-2, 2:-2]
    apart = abs(float(np.median(_rim(inner))) - float(np.median(_rim(pixels))))
    if apart < UNLIKE or int(inner.max()) - int(inner.min()) <= EVEN:  # a margin, or a black bar
        return 0, 0, pixels
    return left, top, np.pad(inner, 2, mode="edge")


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


def _all_of(page: Image.Image) -> Box:
    return 0.0, 0.0, float(page.width), float(page.height)


# --- where to look closely ---


def _densest(page: Image.Image, box: Box, side: float, count: int) -> list[tuple[float, float]]:
    """Centres of the squares in the box with the most detail, at least 3/4 of a side apart."""
    scale = max(box[2] - box[0], box[3] - box[1]) / LOOK_AT
    size = (
        max(2, round((box[2] - box[0]) / scale)),
        max(2, round((box[3] - box[1]) / scale)),
    )
    small = page.resize(size, Image.Resampling.BILINEAR, box=box, reducing_gap=2.0)
    reach = tuple(min(length, max(1, round(side / scale))) for length in size)  # x, y
    sums = _centred_sums(_detail(np.asarray(small)), reach)
    found: list[tuple[float, float]] = []
    rows, columns = (np.arange(length) for length in sums.shape)
    for _ in range(count):
        row, column = divmod(int(sums.argmax()), sums.shape[1])
        if sums[row, column] < 0:
            break
        x, y = column + reach[0] / 2, row + reach[1] / 2
        found.append((box[0] + x * scale, box[1] + y * scale))
        near = (np.abs(rows - row) < 0.75 * reach[1])[:, None]
        sums[near & (np.abs(columns - column) < 0.75 * reach[0])] = -1
    return found


def _detail(pixels: Gray) -> NDArray[np.float64]:
    """(H, W): how much each pixel differs from its neighbours."""
    values = pixels.astype(np.float64)
    across = np.abs(np.diff(values, axis=1, append=values[:, -1:]))
    down = np.abs(np.diff(values, axis=0, append=values[-1:]))
    return np.minimum(across, CLIP) + np.minimum(down, CLIP)


def _centred_sums(values: NDArray[np.float64], reach: tuple[int, ...]) -> NDArray[np.float64]:
    """Sums over all windows of reach (x, y), whose inner halves count twice."""
    half = tuple(max(1, length // 2) for length in reach)
    x, y = ((full - part) // 2 for full, part in zip(reach, half, strict=True))
    sums = _window_sums(values, reach)
    rows, columns = sums.shape
    found: NDArray[np.float64] = sums + _window_sums(values, half)[y : y + rows, x : x + columns]
    return found


def _window_sums(values: NDArray[np.float64], reach: tuple[int, ...]) -> NDArray[np.float64]:
    """Sums over all windows of reach (x, y)."""
    sums = np.pad(values.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    x, y = reach
    found: NDArray[np.float64] = sums[y:, x:] - sums[:-y, x:] - sums[y:, :-x] + sums[:-y, :-x]
    return found
