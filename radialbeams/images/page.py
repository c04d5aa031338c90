"""The quarter network's views of a levelled page: squares with enough pixels to resolve text.

The frame around a page and its empty margins are cropped, and the rest is scaled to a square. Of
long pages and wide strips, the square shows the part with the most detail. Close-up views show
squares of about half that side, at the places with the most detail. All steps commute with quarter
turns of the page.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from PIL import Image

LONGEST = 1.6  # times the short side; of longer content only a part is shown
SHOWN = 600  # pixels; content up to this length is shown whole, since its text stays readable
LEAST_KEPT = 0.5  # of each side, however empty the page is
MARGIN = 0.02  # kept around the content, as a share of the page's sides
EVEN = 10.0  # gray levels; a row with at most this range is empty
UNLIKE = 40.0  # gray levels by which a frame must differ from the page inside it
LOOK_AT = 256  # pixels of the longer side of the copy in which the margins are found
ENLARGED = 2.5  # the largest magnification; larger letters than on a screen do not help
CLOSE = 0.5  # side of a close-up view, as a share of the content's longer side
CLIP = 48.0  # gray levels; the edge of a picture must not outweigh a paragraph

Gray = NDArray[np.uint8]
Box = tuple[float, float, float, float]  # left, top, right, bottom


def page_view(
    page: Image.Image, size: int, box: Box | None = None, *, trim: bool = True, reduced: int = 1
) -> Gray:
    """(size, size) gray pixels of a levelled page in any of its four quarter turns.

    `box` is the content box of the page, if it is already known. `reduced` is the factor by which
    the page was reduced from what counts as its own size.
    """
    page = page if page.mode == "L" else page.convert("L")
    box = (box or content_box(page)) if trim else _all_of(page)
    side = shown_side(box, reduced)
    long = max(box[2] - box[0], box[3] - box[1])
    centres = _densest(page, box, side, 1) if side < long else []
    x, y = centres[0] if centres else ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
    return _square(page, x, y, side, size)


def shown_side(box: Box, reduced: int = 1) -> float:
    """The side of the square that `page_view` shows, in pixels of the page."""
    short, long = sorted((box[2] - box[0], box[3] - box[1]))
    return min(long, max(LONGEST * short, SHOWN / reduced))


def close_views(page: Image.Image, size: int, count: int, box: Box | None = None) -> Iterator[Gray]:
    """Up to `count` close-up views (size, size) of the places with the most detail, best first."""
    page = page if page.mode == "L" else page.convert("L")
    side, centres = close_places(page, count, box)
    return (_square(page, x, y, side, size) for x, y in centres)


def close_places(
    page: Image.Image, count: int, box: Box | None = None
) -> tuple[float, list[tuple[float, float]]]:
    """The side of the squares that close-up views show, and their centres (x, y)."""
    box = box or content_box(page)
    short, long = sorted((box[2] - box[0], box[3] - box[1]))
    side = CLOSE * long if long <= LONGEST * short else short
    return side, _densest(page, box, side, count)


def _square(page: Image.Image, x: float, y: float, side: float, size: int) -> Gray:
    """The square with this centre and side, scaled to `size` and padded with the page's rim."""
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
    """The median gray of the page's rim."""
    return int(np.median(_rim(np.asarray(page))))


def _rim(pixels: Gray) -> Gray:
    return np.concatenate((pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]))


# --- which part of the page is shown ---


def content_box(page: Image.Image) -> Box:
    """The box of the page without a surrounding frame and without its empty margins."""
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
    """Left, top and pixels of the page inside an even frame; all pixels if there is no frame.

    A page that was rotated and levelled again lies in a frame of the fill colour.
    """
    (top, bottom), (left, right) = _filled(pixels), _filled(pixels.T)
    if min(bottom - top, right - left) < 12:
        return 0, 0, pixels
    page = pixels[top:bottom, left:right]
    # The outermost pixels blend the page with its frame, and would make margins look non-empty.
    inner = page[2:-2, 2:-2]
    apart = abs(float(np.median(_rim(inner))) - float(np.median(_rim(pixels))))
    if apart < UNLIKE or int(inner.max()) - int(inner.min()) <= EVEN:  # a margin, or a black bar
        return 0, 0, pixels
    return left, top, np.pad(inner, 2, mode="edge")


def _filled(pixels: Gray) -> tuple[int, int]:
    """The first row that is not empty, and one after the last; all rows if all are empty."""
    spread = pixels.max(axis=1).astype(np.int16) - pixels.min(axis=1)
    rows = np.flatnonzero(spread > EVEN)
    return (int(rows[0]), int(rows[-1]) + 1) if rows.size else (0, len(pixels))


def _widened(first: float, last: float, length: int) -> tuple[float, float]:
    """The interval with a margin, at least LEAST_KEPT long, and clipped to the page."""
    first, last = first - MARGIN * length, last + MARGIN * length
    lacking = max(0.0, LEAST_KEPT * length - (last - first)) / 2
    return max(0.0, first - lacking), min(float(length), last + lacking)


def _all_of(page: Image.Image) -> Box:
    return 0.0, 0.0, float(page.width), float(page.height)


# --- where close-up views are taken ---


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
    points: list[tuple[float, float]] = []
    rows, columns = (np.arange(length) for length in sums.shape)
    for _ in range(count):
        row, column = divmod(int(sums.argmax()), sums.shape[1])
        if sums[row, column] < 0:
            break
        x, y = column + reach[0] / 2, row + reach[1] / 2
        points.append((box[0] + x * scale, box[1] + y * scale))
        near = (np.abs(rows - row) < 0.75 * reach[1])[:, None]
        sums[near & (np.abs(columns - column) < 0.75 * reach[0])] = -1
    return points


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
    inner = _window_sums(values, half)[y : y + rows, x : x + columns]
    both: NDArray[np.float64] = sums + inner
    return both


def _window_sums(values: NDArray[np.float64], reach: tuple[int, ...]) -> NDArray[np.float64]:
    """Sums over all windows of reach (x, y)."""
    sums = np.pad(values.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    x, y = reach
    boxes: NDArray[np.float64] = sums[y:, x:] - sums[:-y, x:] - sums[y:, :-x] + sums[:-y, :-x]
    return boxes
