"""Pictures that lie turned on a plain canvas: what of them is picture.

Whoever turns a picture and keeps all of it fills four triangles in the corners, with a colour or
with nothing at all. They are no part of the picture, and no model was trained on them. A picture
that was turned on its own canvas has such triangles too, but they never reach the disc that a
model sees, so only the first kind matters here.

Plain backgrounds are common and must stay: only where the rest is a turned rectangle that touches
all four sides of the canvas is the background taken for corners.
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

# Levels by which a plain colour may vary: as JPEG leaves it; in a file without loss, where the
# picture's own edge may be nearly as dark as the corners; and as JPEG leaves it in a small file.
TOLERANCES = (24, 6, 48)
HALF_CLEAR = 128  # less alpha than this is no picture
SIDE = 160  # pixels of the copy that is looked at
OFF_CENTRE = 0.03  # of the canvas
# Above this share of the canvas' shorter side the corners stay outside what a model sees, by a
# little more than the blur of its view.
HARMLESS = 0.92
# What spans less of the canvas than this in either direction is an object on a background.
SPANNED = 0.75
# An edge counts where picture lies within so many pixels of it: this share of all four edges and
# of each. The rest may be as dark as the corners, or as bright.
NEAR, EDGES, EDGE = 2.5, 0.7, 0.3
AGREEING = 2  # edges that a picture must be seen up to for the others to be guessed
NEARLY_45 = 0.2  # difference of cosine and sine
_ANGLES = np.radians(np.arange(1, 90, dtype=np.float32))


def without_corners(picture: Image.Image) -> Image.Image:
    """The middle of an RGB or RGBA picture that holds no corners, or the picture itself."""
    share = picture_share(picture)
    if share is None:
        return picture
    side = max(1, math.floor(share * min(picture.size)))
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    return picture.crop((left, top, left + side, top + side))


def picture_share(picture: Image.Image) -> float | None:
    """The side of the square in the middle whose circle is all picture.

    As a share of the shorter side; None where the corners are not filled, or do no harm.
    """
    if picture.mode == "RGBA":
        clear = _small(picture.getchannel("A")) < HALF_CLEAR
        if clear.any():  # nothing is left to guess
            return _share_of(~clear)
        picture = picture.convert("RGB")
    return _share_by_colour(picture)


def _share_by_colour(picture: Image.Image) -> float | None:
    if not has_plain_corners(picture):
        return None
    small = _small(picture)
    corners = np.median(small[[0, 0, -1, -1], [0, -1, 0, -1]], axis=0).astype(np.int16)
    away = np.abs(small - corners).max(2)
    shares = (_share_of(~_filled(away <= tolerance)) for tolerance in TOLERANCES)
    return next((share for share in shares if share is not None), None)


def _small(picture: Image.Image) -> NDArray[np.int16]:
    return np.asarray(picture.reduce(math.ceil(max(picture.size) / SIDE))).astype(np.int16)


def _share_of(rest: Mask) -> float | None:
    """Of what is not filled, if it is a turned rectangle whose surroundings a model would see."""
    if rest[_seen(rest.shape)].all() or not rest.any():
        return None
    x, y = _outline(rest)
    if min(np.ptp(x) / rest.shape[1], np.ptp(y) / rest.shape[0]) < SPANNED:
        return None
    found = _smallest_rectangle(x, y)
    sides = found.sides if found.fits(rest.shape) else found.completed(rest.shape)
    share = (min(sides) - 1) / min(rest.shape)  # less the pixels on its edges
    return share if 0 < share < HARMLESS else None


@dataclass(frozen=True)
class _Rectangle:
    """Turned, in pixels; how much of each of its edges has picture beside it."""

    sides: tuple[float, float]
    middle: tuple[float, float]  # x, y
    angle: float  # radians
    edges: tuple[float, ...]

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether it touches all four sides of the canvas, and its own edges are picture."""
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
        """Sides of the one that touches all four sides of the canvas, turned as this one is.

        A picture with a strip along its edge that looks like the corners is not seen whole, but
        the canvas and the angle say how large it is. (0, 0) if too few edges agree with that.
        """
        full = _filling(shape, self.angle)
        short, limit = self._short_of(full, shape), OFF_CENTRE * min(shape)
        agreeing = sum(abs(one) <= limit for one in short)
        good = self.is_whole and agreeing >= AGREEING and min(short) >= -limit
        return full if good else (0, 0)

    @property
    def is_whole(self) -> bool:
        return min(self.edges) >= EDGE and sum(self.edges) / 4 >= EDGES

    def _short_of(self, full: tuple[float, float], shape: tuple[int, ...]) -> list[float]:
        """How far each edge lies inside a rectangle around the canvas' middle."""
        x, y = self.middle[0] - (shape[1] - 1) / 2, self.middle[1] - (shape[0] - 1) / 2
        cos, sin = math.cos(self.angle), math.sin(self.angle)
        off = (x * cos + y * sin, y * cos - x * sin)
        room = [(outer - inner) / 2 for outer, inner in zip(full, self.sides, strict=True)]
        return [room[0] + off[0], room[0] - off[0], room[1] + off[1], room[1] - off[1]]


def _filling(shape: tuple[int, ...], angle: float) -> tuple[float, float]:
    """Sides of the rectangle at that angle that touches all sides of the canvas."""
    (height, width), cos, sin = shape, math.cos(angle), math.sin(angle)
    if abs(width - height) <= 2:  # a square, as far as one can tell in a copy this small
        return width / (cos + sin), height / (cos + sin)
    if abs(cos - sin) < NEARLY_45:  # any rectangle of the same circumference does
        return 0, 0
    scale = cos * cos - sin * sin
    return (width * cos - height * sin) / scale, (height * cos - width * sin) / scale


def smallest_around(plain: Mask) -> tuple[float, tuple[float, float]] | None:
    """Radians counter-clockwise, and the sides, of the smallest rectangle around the picture.

    `plain` is what has the corners' colour, at any resolution. None where the picture spans too
    little of the canvas.
    """
    step = math.ceil(max(plain.shape) / SIDE)
    rest = ~_filled(plain[::step, ::step])
    if not rest.any():
        return None
    x, y = _outline(rest)
    if min(np.ptp(x) / rest.shape[1], np.ptp(y) / rest.shape[0]) < SPANNED:
        return None
    found = _smallest_rectangle(x, y)
    (along, across), angle = found.sides, -found.angle  # rows run downwards
    if angle <= -math.pi / 4:  # the same rectangle, named by its other side
        along, across, angle = across, along, angle + math.pi / 2
    return angle, (along * step, across * step)


def has_plain_corners(picture: Image.Image) -> bool:
    """Four pixels settle it for nearly all photographs."""
    right, bottom = picture.width - 1, picture.height - 1
    if min(right, bottom) < 15:
        return False
    pixels = [picture.getpixel(at) for at in ((0, 0), (right, 0), (0, bottom), (right, bottom))]
    levels = list(zip(*pixels, strict=True))
    return all(max(level) - min(level) <= TOLERANCES[0] for level in levels)


def _filled(like: Mask) -> Mask:
    """What has the corners' colour, and nothing else between itself and both nearest sides."""
    left, top = (np.logical_and.accumulate(like, axis=axis) for axis in (1, 0))
    right = np.logical_and.accumulate(like[:, ::-1], axis=1)[:, ::-1]
    bottom = np.logical_and.accumulate(like[::-1], axis=0)[::-1]
    filled: Mask = (left | right) & (top | bottom)
    return filled


@lru_cache(maxsize=64)
def _seen(shape: tuple[int, ...]) -> Mask:
    """The disc in the middle that a model sees."""
    y, x = (np.arange(side) - (side - 1) / 2 for side in shape)
    seen: Mask = x**2 + y[:, None] ** 2 <= (HARMLESS * min(shape) / 2) ** 2
    return seen


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
    """Around the outline; one degree is fine enough for a copy this small."""
    cos, sin = np.cos(_ANGLES)[:, None], np.sin(_ANGLES)[:, None]
    along, across = x * cos + y * sin, y * cos - x * sin  # (angles, points)
    width, height = np.ptp(along, axis=1) + 1, np.ptp(across, axis=1) + 1
    best = int((width * height).argmin())
    u, v, c, s = along[best], across[best], float(cos[best, 0]), float(sin[best, 0])
    (p, q), (r, t) = (u.min(), u.max()), (v.min(), v.max())
    middle = ((p + q) / 2, (r + t) / 2)
    edges = (
        _beside(u - p, v - r, t - r),
        _beside(q - u, v - r, t - r),
        _beside(v - r, u - p, q - p),
        _beside(t - v, u - p, q - p),
    )
    return _Rectangle(
        (float(width[best]), float(height[best])),
        (middle[0] * c - middle[1] * s, middle[0] * s + middle[1] * c),
        float(_ANGLES[best]),
        edges,
    )


def _beside(depth: Floats, along: Floats, length: float) -> float:
    """The share of an edge, in 16 pieces, beside which there is picture."""
    near = along[depth <= NEAR]
    pieces = np.minimum(near * (16 / max(length, 1)), 15).astype(int)
    return len(set(pieces.tolist())) / 16
