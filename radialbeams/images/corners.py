"""Detects the filled corners of a picture that was rotated onto a larger plain canvas.

Rotating a picture onto a canvas that holds all of it leaves four triangles in the corners, which
are filled with one colour or left transparent. They are not part of the picture, and no model was
trained on them. A picture that was rotated on its own canvas has such triangles too, but they
never reach the disc that a model sees, so only the first kind matters here.

Plain backgrounds are common and must stay. So a background counts as filled corners only if the
rest is a rotated rectangle that touches all four sides of the canvas.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Mask = NDArray[np.bool_]
Floats = NDArray[np.float32]

# By how many levels a plain colour may vary: after JPEG compression; in a lossless file, where the
# edge of the picture may be nearly as dark as the corners; and after strong JPEG compression.
TOLERANCES = (24, 6, 48)
HALF_CLEAR = 128  # alpha below this counts as transparent
SIDE = 160  # pixels of the reduced copy that is analysed
OFF_CENTRE = 0.03  # tolerated offset, as a share of the canvas
# If the rectangle's shorter side has at least this share of the canvas's shorter side, the corners
# stay outside what a model sees, with a margin of a little more than the blur of its view.
HARMLESS = 0.92
# Content that spans less of the canvas than this in either direction is an object on a background.
SPANNED = 0.75
# Picture content must lie within NEAR pixels of the rectangle's edges, along this share of all
# four edges and of each single edge. The rest may have the colour of the corners.
NEAR, EDGES, EDGE = 2.5, 0.7, 0.3
AGREEING = 2  # this many edges must be visible for the others to be inferred
NEARLY_45 = 0.2  # difference of cosine and sine
_ANGLES = np.radians(np.arange(1, 90, dtype=np.float32))


def without_corners(picture: Image.Image) -> Image.Image:
    """The central square of an RGB or RGBA picture without its filled corners.

    Returns the picture itself if it has no such corners.
    """
    share = picture_share(picture)
    if share is None:
        return picture
    side = max(1, math.floor(share * min(picture.size)))
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    return picture.crop((left, top, left + side, top + side))


def picture_share(picture: Image.Image) -> float | None:
    """The side of the central square whose inscribed circle contains no filled corner.

    As a share of the shorter side; None if there are no filled corners, or if they do no harm.
    """
    if picture.mode == "RGBA":
        clear = _small(picture.getchannel("A")) < HALF_CLEAR
        if clear.any():  # the alpha channel shows the corners
            return _share_of(~clear)
        picture = picture.convert("RGB")
    return _share_by_colour(picture)


def _share_by_colour(picture: Image.Image) -> float | None:
    if not has_plain_corners(picture):
        return None
    small = _small(picture)
    corners = np.median(small[[0, 0, -1, -1], [0, -1, 0, -1]], axis=0).astype(np.int16)
    # One pass for each colour: the maximum along an axis of three numbers takes far longer.
    away = np.maximum.reduce([np.abs(small[..., c] - corners[c]) for c in range(small.shape[2])])
    shares = (_share_of(~_filled(away <= tolerance)) for tolerance in TOLERANCES)
    return next((share for share in shares if share is not None), None)


def _small(picture: Image.Image) -> NDArray[np.int16]:
    return np.asarray(picture.reduce(math.ceil(max(picture.size) / SIDE))).astype(np.int16)


def _share_of(rest: Mask) -> float | None:
    """The share for a mask of what is not filled.

    None unless the mask is a rotated rectangle whose surroundings a model would see.
    """
    if rest[_visible_disc(rest.shape)].all() or not rest.any():
        return None
    x, y = _outline(rest)
    if min(np.ptp(x) / rest.shape[1], np.ptp(y) / rest.shape[0]) < SPANNED:
        return None
    rectangle = _smallest_rectangle(x, y)
    sides = rectangle.sides if rectangle.fits(rest.shape) else rectangle.completed(rest.shape)
    share = (min(sides) - 1) / min(rest.shape)  # less the pixels on its edges
    return share if 0 < share < HARMLESS else None


@dataclass(frozen=True)
class _Rectangle:
    """A rotated rectangle, in pixels; `edges` are the shares of each edge that touch picture."""

    sides: tuple[float, float]
    middle: tuple[float, float]  # x, y
    angle: float  # radians
    edges: tuple[float, ...]

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether it touches all four sides of the canvas, and picture reaches its edges."""
        height, width = shape
        (a, b), cos, sin = self.sides, math.cos(self.angle), math.sin(self.angle)
        away = (
            (a * cos + b * sin) / width - 1,
            (a * sin + b * cos) / height - 1,
            (self.middle[0] - (width - 1) / 2) / width,
            (self.middle[1] - (height - 1) / 2) / height,
        )
        return self.is_whole and max(map(abs, away)) <= OFF_CENTRE

    def completed(self, shape: tuple[int, ...]) -> tuple[float, float]:
        """Sides of the rectangle at the same angle that touches all four sides of the canvas.

        If a strip along the edge of a picture has the colour of the corners, only part of the
        picture is detected, but the canvas and the angle determine its full size. Returns (0, 0)
        if too few edges agree with that size.
        """
        full = _filling(shape, self.angle)
        short, limit = self._short_of(full, shape), OFF_CENTRE * min(shape)
        agreeing = sum(abs(gap) <= limit for gap in short)
        good = self.is_whole and agreeing >= AGREEING and min(short) >= -limit
        return full if good else (0, 0)

    @property
    def is_whole(self) -> bool:
        return min(self.edges) >= EDGE and sum(self.edges) / 4 >= EDGES

    def _short_of(self, full: tuple[float, float], shape: tuple[int, ...]) -> list[float]:
        """How far each edge lies inside the rectangle `full` around the middle of the canvas."""
        x, y = self.middle[0] - (shape[1] - 1) / 2, self.middle[1] - (shape[0] - 1) / 2
        cos, sin = math.cos(self.angle), math.sin(self.angle)
        off = (x * cos + y * sin, y * cos - x * sin)
        room = [(outer - inner) / 2 for outer, inner in zip(full, self.sides, strict=True)]
        return [room[0] + off[0], room[0] - off[0], room[1] + off[1], room[1] - off[1]]


def _filling(shape: tuple[int, ...], angle: float) -> tuple[float, float]:
    """Sides of the rectangle at that angle that touches all sides of the canvas."""
    (height, width), cos, sin = shape, math.cos(angle), math.sin(angle)
    if abs(width - height) <= 2:  # a square, within the precision of the reduced copy
        return width / (cos + sin), height / (cos + sin)
    if abs(cos - sin) < NEARLY_45:  # every rectangle of the same perimeter would fit
        return 0, 0
    scale = cos * cos - sin * sin
    return (width * cos - height * sin) / scale, (height * cos - width * sin) / scale


def smallest_around(plain: Mask) -> tuple[float, tuple[float, float]] | None:
    """Angle (radians, counter-clockwise) and sides of the smallest rectangle around the picture.

    `plain` marks the pixels with the colour of the corners, at any resolution. Returns None if the
    picture spans too little of the canvas.
    """
    step = math.ceil(max(plain.shape) / SIDE)
    rest = ~_filled(plain[::step, ::step])
    if not rest.any():
        return None
    x, y = _outline(rest)
    if min(np.ptp(x) / rest.shape[1], np.ptp(y) / rest.shape[0]) < SPANNED:
        return None
    rectangle = _smallest_rectangle(x, y)
    (along, across), angle = rectangle.sides, -rectangle.angle  # rows run downwards
    if angle <= -math.pi / 4:  # the same rectangle, described by its other side
        along, across, angle = across, along, angle + math.pi / 2
    return angle, (along * step, across * step)


def has_plain_corners(picture: Image.Image) -> bool:
    """Whether the four corner pixels have nearly the same colour; in most photos they do not."""
    right, bottom = picture.width - 1, picture.height - 1
    if min(right, bottom) < 15:
        return False
    pixels = [picture.getpixel(at) for at in ((0, 0), (right, 0), (0, bottom), (right, bottom))]
    levels = list(zip(*pixels, strict=True))
    return all(max(level) - min(level) <= TOLERANCES[0] for level in levels)


def _filled(like: Mask) -> Mask:
    """Marks pixels of the corners' colour that reach a vertical and a horizontal side unbroken."""
    from_left, from_right = _unbroken(like)
    columns = np.arange(like.shape[1])
    beside = (columns < from_left[:, None]) | (columns[::-1] < from_right[:, None])
    from_top, from_bottom = _unbroken(np.ascontiguousarray(like.T))
    rows = np.arange(like.shape[0])[:, None]
    filled: Mask = beside & ((rows < from_top) | (rows[::-1] < from_bottom))
    return filled


def _unbroken(like: Mask) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(H,) each: how many pixels of each row are marked, from its left and from its right end."""
    whole = like.all(1)  # `argmin` finds no end there
    length = like.shape[1]
    return (
        np.where(whole, length, like.argmin(1)),
        np.where(whole, length, like[:, ::-1].argmin(1)),
    )


@lru_cache(maxsize=64)
def _visible_disc(shape: tuple[int, ...]) -> Mask:
    """The disc in the middle that a model sees."""
    y, x = (np.arange(side) - (side - 1) / 2 for side in shape)
    disc: Mask = x**2 + y[:, None] ** 2 <= (HARMLESS * min(shape) / 2) ** 2
    return disc


def _outline(rest: Mask) -> tuple[Floats, Floats]:
    """x and y of the outermost pixels of each row and each column."""
    rows, columns = np.flatnonzero(rest.any(1)), np.flatnonzero(rest.any(0))
    left, right = rest[rows].argmax(1), rest.shape[1] - 1 - rest[rows, ::-1].argmax(1)
    top = rest[:, columns].argmax(0)
    bottom = rest.shape[0] - 1 - rest[::-1, columns].argmax(0)
    x = np.concatenate((left, right, columns, columns)).astype(np.float32)
    y = np.concatenate((rows, rows, top, bottom)).astype(np.float32)
    return x, y


def _smallest_rectangle(x: Floats, y: Floats) -> _Rectangle:
    """The smallest rectangle around the outline, to one degree: enough for so small a copy."""
    cos, sin = np.cos(_ANGLES)[:, None], np.sin(_ANGLES)[:, None]
    along, across = x * cos + y * sin, y * cos - x * sin  # (angles, points)
    width, height = np.ptp(along, axis=1) + 1, np.ptp(across, axis=1) + 1
    best = int((width * height).argmin())
    u, v, c, s = along[best], across[best], float(cos[best, 0]), float(sin[best, 0])
    (p, q), (r, t) = (u.min(), u.max()), (v.min(), v.max())
    middle = ((p + q) / 2, (r + t) / 2)
    edges = (
        _touching_share(u - p, v - r, t - r),
        _touching_share(q - u, v - r, t - r),
        _touching_share(v - r, u - p, q - p),
        _touching_share(t - v, u - p, q - p),
    )
    return _Rectangle(
        (float(width[best]), float(height[best])),
        (middle[0] * c - middle[1] * s, middle[0] * s + middle[1] * c),
        float(_ANGLES[best]),
        edges,
    )


def _touching_share(depth: Floats, along: Floats, length: float) -> float:
    """The share of an edge, divided into 16 pieces, that touches picture."""
    near = along[depth <= NEAR]
    pieces = np.minimum(near * (16 / max(length, 1)), 15).astype(int)
    return len(set(pieces.tolist())) / 16
