"""The square view of a picture that is the input of a model. numpy only.

Convention: `turn` is in degrees, counter-clockwise as displayed, about the middle of the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radialbeams.cards import ViewProtocol
from radialbeams.images.corners import without_corners
from radialbeams.images.frames import has_plain_ground

Floats = NDArray[np.float32]
Band = tuple[slice, slice, Floats]  # rows of a view, rows of the square, weights between them


def view(
    picture: Image.Image,
    protocol: ViewProtocol,
    view_size: int,
    channels: int,
    turn: float = 0.0,
) -> Floats:
    """(C, S, S) in [0, 1]: the view of an RGB or RGBA picture by a model card's protocol."""
    return looks(picture, protocol, view_size, channels, (turn,))[0]


def looks(
    picture: Image.Image,
    protocol: ViewProtocol,
    view_size: int,
    channels: int,
    turns: Sequence[float],
) -> list[Floats]:
    """One view for each turn; steps that do not depend on the turn are done once."""
    leakfree = protocol.name == "leakfree"
    picture = _on_black(without_corners(picture) if leakfree else picture)
    if channels == 1:
        picture = picture.convert("L").convert("RGB")
    if leakfree:
        sizes = protocol.parent_size or view_size, view_size
        views = _leakfree(picture, *sizes, turns, protocol.sigma, protocol.reach)
    else:
        views = [paper_view(picture, view_size, turn) for turn in turns]
    return [view[:channels] for view in views]


def ends(picture: Image.Image, parent_size: int) -> tuple[Image.Image, Image.Image] | None:
    """The squares at both ends of an oblong RGB or RGBA picture, or None.

    None as well if its corners are plain: they may be fill, which the square in the middle does not
    reach, and which gives the rotation away. Large squares are reduced as for a leak-free view.
    """
    width, height = picture.size
    side = min(width, height)
    if max(width, height) < OBLONG * side or has_plain_ground(picture):
        return None
    picture = _on_black(picture)
    first = picture.crop((0, 0, side, side))
    second = picture.crop((width - side, height - side, width, height))
    if side < DIRECT * parent_size:
        return first, second
    return _resized(first, parent_size), _resized(second, parent_size)


def views_of(
    squares: Sequence[Image.Image], protocol: ViewProtocol, view_size: int, channels: int
) -> Floats:
    """(N, C, S, S): the leak-free views of RGB squares, as they are."""
    if channels == 1:
        squares = [square.convert("L").convert("RGB") for square in squares]
    sizes = protocol.parent_size or view_size, view_size
    views = [_leakfree(s, *sizes, (0.0,), protocol.sigma, protocol.reach)[0] for s in squares]
    return np.stack(views)[:, :channels]


def _on_black(picture: Image.Image) -> Image.Image:
    """The picture in RGB on black: its premultiplied colours are exactly that."""
    if picture.mode != "RGBA":
        return picture
    return Image.merge("RGB", picture.convert("RGBa").split()[:3])


def centre_square(picture: Image.Image) -> Image.Image:
    """The central square of a picture; a square picture itself, since cropping would copy it."""
    side = min(picture.size)
    if picture.size == (side, side):
        return picture
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    return picture.crop((left, top, left + side, top + side))


def paper_view(picture: Image.Image, view_size: int, turn: float = 0.0) -> Floats:
    """(3, S, S) in [0, 1]: the central square, used as the paper's padded and rotated X_θ."""
    view = centre_square(picture).resize((view_size, view_size), Image.Resampling.LANCZOS)
    if turn:
        view = view.rotate(turn, Image.Resampling.BICUBIC)
    return np.asarray(view, dtype=np.float32).transpose(2, 0, 1) / np.float32(255)


# The leak-free view has two implementations, in torch for training and here for files; a test
# compares them. Constants: the visible share of the parent's half-width, the largest side of a
# view as a share of the parent's, and the parameter of torch's bicubic kernel.
REACH, LARGEST_VIEW, BICUBIC = 0.9, 0.45, -0.75
BANDS = 512  # steps of numerical integrals
# Pillow reduces by a larger factor than twice this one in two steps: box averages, then Lanczos.
GAP = 3.0
# From this multiple of the parent's size on, resizing with Pillow is faster than the products.
DIRECT = 4
OBLONG = 1.1  # how much longer than high, or the other way around, a picture with two ends is


def leakfree_view(
    picture: Image.Image,
    parent_size: int,
    view_size: int,
    turn: float = 0.0,
    sigma: float | None = None,
    reach: float = REACH,
) -> Floats:
    """(3, S, S) in [0, 1]: the central disc of the central square, on black.

    `sigma` is that of the blur, in pixels of the parent; None: it follows from the sizes. `reach`
    is the radius of the disc, as a share of the parent's half-width.
    """
    return _leakfree(picture, parent_size, view_size, (turn,), sigma, reach)[0]


def _leakfree(
    picture: Image.Image,
    parent_size: int,
    view_size: int,
    turns: Sequence[float],
    sigma: float | None,
    reach: float,
) -> list[Floats]:
    if sigma is None:
        sigma = int(LARGEST_VIEW * parent_size) / view_size
    square = centre_square(picture)
    still = [] if all(turns) else [_unturned(square, parent_size, view_size, sigma, reach)]
    if not any(turns):
        return still * len(turns)
    # Blurring at the parent's size is worth it only for a view that is turned.
    blurred = _both_axes(_blur(parent_size, sigma), _parent(square, parent_size))
    return [_turned(blurred, view_size, turn, reach) if turn else still[0] for turn in turns]


def _parent(square: Image.Image, size: int) -> Floats:
    """(3, W, W) in [0, 1]: the square at the size that the model was trained on."""
    pixels = np.asarray(_resized(square, size), dtype=np.float32)
    return pixels.transpose(2, 0, 1) / np.float32(255)


def _resized(square: Image.Image, size: int) -> Image.Image:
    if square.width == size:
        return square
    return square.resize((size, size), Image.Resampling.LANCZOS, reducing_gap=GAP)


def _unturned(
    square: Image.Image, parent_size: int, view_size: int, sigma: float, reach: float
) -> Floats:
    """Without a turn, the axes separate: resizing, blur and resampling are two matrix products."""
    if not parent_size <= square.width < DIRECT * parent_size:
        square = _resized(square, parent_size)
    side = square.width
    bands = _bands(side, parent_size, view_size, sigma, reach)
    pixels = np.asarray(square).astype(np.float32).reshape(side, side * 3)
    down = _through(bands, pixels, view_size)  # (S, H·3)
    columns = down.reshape(view_size, side, 3).transpose(1, 2, 0).reshape(side, 3 * view_size)
    across = _through(bands, columns, view_size)  # (S, 3·S)
    view = across.reshape(view_size, 3, view_size).transpose(1, 2, 0)  # (3, S, S)
    return view * (_disc(view_size) / np.float32(255))


def _through(bands: Sequence[Band], rows: Floats, view_size: int) -> Floats:
    """A banded matrix (S, H) times (H, …) → (S, …)."""
    product = np.empty((view_size, rows.shape[1]), dtype=np.float32)
    for view_rows, square_rows, weights in bands:
        np.matmul(weights, rows[square_rows], out=product[view_rows])
    return product


def _both_axes(matrix: Floats, pixels: Floats) -> Floats:
    """(S, W) along both axes of (C, W, W) → (C, S, S)."""
    return _along_rows(matrix, _along_rows(matrix, pixels).swapaxes(1, 2)).swapaxes(1, 2)


# OpenBLAS starts threads for a product of more multiplications than this. For products as small as
# these, threads cost more than they save, and concurrent callers wait for each other's threads.
ONE_THREAD = 2**18


def _along_rows(matrix: Floats, pixels: Floats) -> Floats:
    """(S, W) along the last axis of (C, H, W) → (C, H, S), in blocks that stay in one thread."""
    rows = pixels.reshape(-1, pixels.shape[-1])
    block = max(1, ONE_THREAD // matrix.size)
    whole = len(rows) // block * block
    blocks = rows[:whole].reshape(-1, block, rows.shape[1]) @ matrix.T
    first = blocks.reshape(whole, len(matrix))
    product: Floats = np.concatenate([first, rows[whole:] @ matrix.T])
    return product.reshape(*pixels.shape[:-1], -1)


def _turned(blurred: Floats, view_size: int, turn: float, reach: float) -> Floats:
    """With a turn, the axes do not separate: 4 × 4 weighted pixels for each pixel of the disc."""
    pixels = blurred.reshape(3, -1)
    index, weight = _taps(blurred.shape[-1], view_size, turn, reach)
    view = np.zeros((3, view_size, view_size), dtype=np.float32)
    samples = sum(pixels[:, i] * w for i, w in zip(index, weight, strict=True))
    view[:, _disc(view_size) > 0] = samples
    return view


# --- geometry, once for each size --------------------------------------------------------------


def _offsets(parent_size: int, view_size: int, reach: float) -> NDArray[np.float64]:
    """(S,): how far each pixel of a view lies from its middle, in pixels of the parent."""
    return (np.arange(view_size) - (view_size - 1) / 2) * reach * parent_size / view_size


@cache
def _disc(view_size: int) -> Floats:
    """(S, S) of 1 inside the largest circle and 0 outside."""
    offsets = np.arange(view_size) - (view_size - 1) / 2
    inside = offsets**2 + offsets[:, None] ** 2 <= (view_size / 2) ** 2
    return inside.astype(np.float32)


@cache
def _blur(parent_size: int, sigma: float) -> Floats:
    """(W, W): the filter that, combined with the bicubic kernel, is a Gaussian along one axis.

    Its rows sum to 1, also at the border. `nn.rotation` explains why it is no plain Gaussian.
    """
    index = np.arange(parent_size)
    frequency = (np.arange(BANDS) + 0.5) / (2 * BANDS)  # cycles a pixel
    gaussian = np.exp(-2 * (np.pi * sigma * frequency) ** 2)
    waves = np.cos(2 * np.pi * frequency * index[:, None])  # (W, BANDS)
    taps = (waves * gaussian / _bicubic_response(frequency)).mean(1)
    taps[index > 4 * sigma + 2] = 0
    weights = taps[np.abs(index[:, None] - index)]
    rows: Floats = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
    return rows


def _bicubic_response(frequency: NDArray[np.float64]) -> NDArray[np.float64]:
    """The Fourier transform of the bicubic kernel; frequencies in cycles per pixel."""
    distance = (np.arange(2 * BANDS) + 0.5) / BANDS  # (0, 2)
    waves = np.cos(2 * np.pi * frequency[:, None] * distance)
    left: NDArray[np.float64] = 2 * (waves * _bicubic_weight(distance)).sum(1) / BANDS
    return left


@cache
def _blur_and_resample(parent_size: int, view_size: int, sigma: float, reach: float) -> Floats:
    """(S, W): the blur, then the bicubic resample, along one axis."""
    pixels, weights = _four_taps((parent_size - 1) / 2 + _offsets(parent_size, view_size, reach))
    matrix = np.zeros((view_size, parent_size), dtype=np.float32)
    for pixel, weight in zip(pixels, weights, strict=True):
        matrix[np.arange(view_size), pixel.clip(0, parent_size - 1)] += weight
    both: Floats = matrix @ _blur(parent_size, sigma)
    return both


@lru_cache(maxsize=256)
def _bands(
    side: int, parent_size: int, view_size: int, sigma: float, reach: float
) -> tuple[Band, ...]:
    """The matrix from a square to a view, along one axis, without most of its zeros.

    Each band is small enough to stay in one thread.
    """
    matrix = _from_square(side, parent_size, view_size, sigma, reach)
    step = next(
        step
        for step in range(view_size, 0, -1)
        if step == 1 or step * _widest(matrix, step) * 3 * side <= ONE_THREAD
    )
    bands = []
    for first in range(0, view_size, step):
        rows = slice(first, min(first + step, view_size))
        columns = _span(matrix[rows])
        bands.append((rows, columns, np.ascontiguousarray(matrix[rows, columns])))
    return tuple(bands)


def _widest(matrix: Floats, step: int) -> int:
    spans = (_span(matrix[first : first + step]) for first in range(0, len(matrix), step))
    return max(int(span.stop - span.start) for span in spans)


def _span(rows: Floats) -> slice:
    used = np.flatnonzero(rows.any(0))
    return slice(int(used[0]), int(used[-1]) + 1)


def _from_square(side: int, parent_size: int, view_size: int, sigma: float, reach: float) -> Floats:
    """(S, H): Lanczos to the parent's size, the blur, then the bicubic resample, along one axis."""
    matrix = _blur_and_resample(parent_size, view_size, sigma, reach)
    if side == parent_size:
        return matrix
    both: Floats = matrix @ _lanczos(side, parent_size)
    return both


def _lanczos(side: int, size: int) -> Floats:
    """(W, H): Pillow's resize with its Lanczos filter, along one axis, to a smaller size."""
    scale = side / size
    middles = (np.arange(size)[:, None] + 0.5) * scale
    away = (np.arange(side) + 0.5 - middles) / scale  # in pixels of the result
    weights = np.where(np.abs(away) < 3, np.sinc(away) * np.sinc(away / 3), 0.0)
    rows: Floats = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
    return rows


@lru_cache(maxsize=32)
def _taps(
    parent_size: int, view_size: int, turn: float, reach: float
) -> tuple[NDArray[np.int32], Floats]:
    """Two of (16, P) for the P pixels of the disc: indices into the flat parent, and weights."""
    offsets = _offsets(parent_size, view_size, reach)
    y, x = (axis[_disc(view_size) > 0] for axis in np.meshgrid(offsets, offsets, indexing="ij"))
    cos, sin = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    middle = (parent_size - 1) / 2
    columns, across = _four_taps(middle + x * cos - y * sin)
    rows, down = _four_taps(middle + x * sin + y * cos)
    columns, rows = (pixels.clip(0, parent_size - 1) for pixels in (columns, rows))
    index = rows[:, None] * parent_size + columns[None]
    weight = down[:, None] * across[None]
    return index.reshape(16, -1).astype(np.int32), weight.reshape(16, -1).astype(np.float32)


def _four_taps(
    positions: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Two of (4, …): the pixels around each position on a line, and their weights."""
    pixels = np.floor(positions).astype(np.int64) + np.arange(-1, 3).reshape(4, 1)
    return pixels, _bicubic_weight(np.abs(positions - pixels))


def _bicubic_weight(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Keys' kernel at 0 ≤ distance ≤ 2."""
    a, d = BICUBIC, distance
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * (d**3 - 5 * d**2 + 8 * d - 4)
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))
