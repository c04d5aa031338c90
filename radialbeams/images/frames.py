"""Finds the frame of a picture: its rectangle, if it was rotated on a plain canvas.

Rotating a picture leaves empty corners on the canvas, which are filled with one colour or left
transparent. If they are visible, the rectangle gives two things more precisely than any model: the
angle, up to quarter turns, and which part of the canvas is picture. There are two cases. On an
enlarged canvas the whole rectangle is visible; on the picture's own canvas its corners are cut off.

Convention: angles are degrees, counter-clockwise as displayed. The axes of a rectangle are u to
the right and v downwards, in pixels from its middle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radialbeams.images.corners import TOLERANCES, has_plain_corners, smallest_around

Mask = NDArray[np.bool_]
Doubles = NDArray[np.float64]

SIDE, COARSE_SIDE = 640, 256  # pixels of the reduced copies that are analysed
HALF_CLEAR = 128  # alpha below this counts as transparent
STEP, COARSE_STEP = 0.5, 1.0  # degrees between the candidate angles
LEAST = 1.0  # degrees; smaller angles cannot be told from a thin border
FEW, STATIONS = 12, 48  # sample points along each edge: to discard candidates, to compare the rest
BESIDE = 2.5  # pixels from an edge at which both sides are sampled
# Required shares of sample points: with picture inside, for each edge and on average; with plain
# colour outside, for each edge. Parts of a picture may have the colour of the corners, but the
# corners have no other colour.
INSIDE, INSIDE_ALL, OUTSIDE = 0.3, 0.7, 0.93
SHARE_ON_CANVAS = 0.1  # of the sample points of an edge
LEAST_STATIONS = 5  # sample points to fit a line through
REACH, FINE = 6.0, 0.5  # pixels around an edge that are searched, and the step of the search
STRAIGHT = 1.0  # pixels by which a sample point may lie off the fitted line
# Outward normals of the edges, and the tangents along which a rotation moves each edge outwards.
NORMALS = np.array([(1, 0), (0, -1), (-1, 0), (0, 1)], dtype=np.float64)
TANGENTS = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)], dtype=np.float64)


@dataclass(frozen=True)
class Frame:
    """A rotated rectangle on a plain canvas, in pixels of that canvas."""

    angle: float  # in (−45, 45]; the picture may also have been turned by quarter turns
    sides: tuple[float, float]  # along its own axes
    middle: tuple[float, float]  # (x, y), from the upper left corner of the canvas
    canvas: tuple[int, int]  # width, height
    colour: str | None  # #rrggbb of the corners; None: they are transparent
    cut: bool  # the picture was rotated on its own canvas, which cuts off its corners

    def on(self, size: tuple[int, int]) -> Frame:
        """The same frame at another resolution of the canvas."""
        x, y = size[0] / self.canvas[0], size[1] / self.canvas[1]
        scale = math.sqrt(x * y)
        sides = (self.sides[0] * scale, self.sides[1] * scale)
        middle = (self.middle[0] * x, self.middle[1] * y)
        return replace(self, sides=sides, middle=middle, canvas=size)


def frame_of(picture: Image.Image) -> Frame | None:
    """The frame of an RGB or RGBA picture, or None; for most pictures four pixels rule it out."""
    if picture.mode == "RGBA":
        clear = np.asarray(_small(picture, SIDE).getchannel("A")) < HALF_CLEAR
        if clear.any():
            return _frame(clear, picture.size, None)
        picture = picture.convert("RGB")
    if not has_plain_corners(picture):
        return None
    coarse = _away(_small(picture, COARSE_SIDE))[0]
    possible = [tolerance for tolerance in TOLERANCES if _may_be_framed(coarse <= tolerance)]
    if not possible:
        return None
    away, colour = _away(_small(picture, SIDE))
    frames = (_frame(away <= tolerance, picture.size, colour) for tolerance in possible)
    return next((frame for frame in frames if frame is not None), None)


def has_plain_ground(picture: Image.Image) -> bool:
    """Whether the corners of an RGB or RGBA picture have one colour or are transparent."""
    if picture.mode == "RGBA":
        right, bottom = picture.width - 1, picture.height - 1
        alpha = np.asarray(picture.getchannel("A"))
        if (alpha[[0, 0, bottom, bottom], [0, right, 0, right]] < HALF_CLEAR).all():
            return True
        picture = picture.convert("RGB")
    return has_plain_corners(picture)


def ground_colour(picture: Image.Image) -> str | None:
    """The common colour of an opaque picture's corners, such as the white of a page, or None."""
    if picture.mode != "RGB" or not has_plain_corners(picture):
        return None
    corners = np.asarray(picture)[[0, 0, -1, -1], [0, -1, 0, -1]]
    return "#" + "".join(f"{value:02x}" for value in np.median(corners, axis=0).astype(int))


def _small(picture: Image.Image, side: int) -> Image.Image:
    return picture.reduce(math.ceil(max(picture.size) / side))


def _away(picture: Image.Image) -> tuple[NDArray[np.int16], str]:
    """(H, W): how far each pixel is from the colour of the corners, and that colour."""
    pixels = np.asarray(picture).astype(np.int16)
    colour = np.median(pixels[[0, 0, -1, -1], [0, -1, 0, -1]], axis=0).astype(np.int16)
    off = np.abs(pixels - colour)
    # `max` along an axis of length three would take ten times as long.
    away: NDArray[np.int16] = np.maximum(np.maximum(off[..., 0], off[..., 1]), off[..., 2])
    return away, "#" + "".join(f"{value:02x}" for value in colour.tolist())


def _may_be_framed(plain: Mask) -> bool:
    """A quick test with few candidates, which rules out most photos with plain corners."""
    if plain.all():
        return False
    scores = _scores(plain, _candidates(plain, COARSE_STEP), FEW)
    return bool((scores > 0).any())


class _Rectangles(NamedTuple):
    """K candidate rectangles around the middle of the canvas."""

    angles: Doubles  # (K,) radians
    sides: Doubles  # (K, 2)
    cut: Mask  # (K,)

    def taken(self, which: NDArray[np.int64]) -> _Rectangles:
        return _Rectangles(self.angles[which], self.sides[which], self.cut[which])


def _frame(plain: Mask, size: tuple[int, int], colour: str | None) -> Frame | None:
    """The best frame for a mask (H, W) of plain pixels; `size` is that of the full picture."""
    height, width = plain.shape
    if not plain[[0, 0, -1, -1], [0, -1, 0, -1]].all() or plain.all():
        return None
    candidates = _candidates(plain, STEP)
    possible = np.flatnonzero(_scores(plain, candidates, FEW) > 0)
    if not len(possible):
        return None
    candidates = candidates.taken(possible)
    scores = _scores(plain, candidates, STATIONS)
    best = int(scores.argmax())
    if not scores[best] > 0:
        return None
    refined = _refined(plain, candidates.taken(np.array([best])))
    if not abs(math.degrees(refined.angles[0])) >= LEAST:
        return None
    # The outermost pixels of the rectangle are blended with the corners.
    sides = refined.sides[0] - (0 if refined.cut[0] else 1)
    frame = Frame(
        math.degrees(refined.angles[0]),
        (float(sides[0]), float(sides[1])),
        (width / 2, height / 2),
        (width, height),
        colour,
        bool(refined.cut[0]),
    )
    return frame.on(size)


def _candidates(plain: Mask, step: float) -> _Rectangles:
    """Rectangles of the canvas's size, those that touch all its sides, and the smallest one."""
    height, width = plain.shape
    angles = np.radians(np.arange(-45 + step, 45 + step, step))
    angles = angles[np.abs(angles) >= np.radians(LEAST)]
    own = np.array([(width, height), (height, width)], dtype=np.float64)  # and after a quarter turn
    inner, is_possible = _touching(width, height, angles)
    inner = inner[is_possible]
    guess = smallest_around(plain)
    smallest = np.empty((0, 2)) if guess is None else np.array([guess[1]])
    at = np.empty(0) if guess is None else np.array([guess[0]])
    return _Rectangles(
        np.concatenate((angles, angles, angles[is_possible], at)),
        np.concatenate((np.repeat(own, len(angles), axis=0), inner, smallest)),
        np.arange(2 * len(angles) + len(inner) + len(at)) < 2 * len(angles),
    )


def _touching(width: int, height: int, angles: Doubles) -> tuple[Doubles, Mask]:
    """(K, 2): sides of the rectangles at these angles that touch all sides of the canvas."""
    cos, sin = np.cos(angles), np.abs(np.sin(angles))
    scale = cos * cos - sin * sin
    if abs(width - height) <= 2:  # a square, within the precision of the reduced copy
        side = width / (cos + sin)
        return np.stack((side, side), axis=1), np.ones(len(angles), dtype=bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        sides = np.stack(
            ((width * cos - height * sin) / scale, (height * cos - width * sin) / scale), axis=1
        )
    # Near 45°, every rectangle of the same perimeter fits; there, only the smallest one is tried.
    return sides, (sides > 8).all(1) & (np.abs(scale) > 0.1)


def _scores(plain: Mask, rectangles: _Rectangles, stations: int) -> Doubles:
    """(K,): how clearly the edges separate picture from plain corners; −1 if they do not."""
    positions = np.linspace(-0.48, 0.48, stations)
    outside, on_canvas = _looked_up(plain, rectangles, positions, np.array([BESIDE]))
    inside, in_canvas = _looked_up(plain, rectangles, positions, np.array([-BESIDE]))
    outer_counts, inner_counts = on_canvas.sum((2, 3)), in_canvas.sum((2, 3))  # (K, 4)
    out = (outside & on_canvas).sum((2, 3)) / np.maximum(outer_counts, 1)
    within = (~inside & in_canvas).sum((2, 3)) / np.maximum(inner_counts, 1)
    slack = 1 / stations  # few sample points discard only clearly wrong candidates
    clear = (out >= OUTSIDE - slack) & (within >= INSIDE - slack)  # (K, 4)
    visible = np.minimum(outer_counts, inner_counts) >= SHARE_ON_CANVAS * stations
    # The picture's own canvas may cut off two whole edges.
    enough = visible.all(1) | (rectangles.cut & (visible.sum(1) >= 2))
    visible_edges = np.maximum(visible.sum(1), 1)
    mean = np.where(visible, within, 0).sum(1) / visible_edges
    good = enough & (clear | ~visible).all(1) & (mean >= INSIDE_ALL - slack)
    return np.where(good, mean + np.where(visible, out, 0).sum(1) / visible_edges, -1.0)


def _looked_up(
    plain: Mask, rectangles: _Rectangles, positions: Doubles, depths: Doubles
) -> tuple[Mask, Mask]:
    """Two of (K, 4, S, D): whether each sample point is plain, and whether it is on the canvas.

    `positions` (S,) lie along the edges, as shares of their lengths; `depths` (D,) are
    distances outwards, in pixels.
    """
    x, y = _points(rectangles, positions, depths)
    height, width = plain.shape
    column, row = np.floor(x + width / 2), np.floor(y + height / 2)
    on_canvas = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    column = column.clip(0, width - 1).astype(np.intp)
    row = row.clip(0, height - 1).astype(np.intp)
    return plain[row, column], on_canvas


def _points(
    rectangles: _Rectangles, positions: Doubles, depths: Doubles
) -> tuple[Doubles, Doubles]:
    """x and y from the middle of the canvas, (K, 4, S, D) each."""
    half = rectangles.sides[:, None] / 2  # (K, 1, 2)
    away = (half * np.abs(NORMALS)).sum(2)[..., None, None] + depths  # (K, 4, 1, D)
    along = 2 * (half * np.abs(TANGENTS)).sum(2)[..., None, None] * positions[:, None]
    u, v = (
        NORMALS[:, axis, None, None] * away + TANGENTS[:, axis, None, None] * along
        for axis in (0, 1)
    )
    cos, sin = (f(rectangles.angles)[:, None, None, None] for f in (np.cos, np.sin))
    return u * cos + v * sin, v * cos - u * sin


def _refined(plain: Mask, rectangle: _Rectangles) -> _Rectangles:
    """The rectangle with its edges moved to the border between picture and corners."""
    for _ in range(2):
        turns, shifts = _corrections(plain, rectangle)
        if turns is None:
            return rectangle
        sides = rectangle.sides if rectangle.cut[0] else rectangle.sides + shifts
        rectangle = _Rectangles(rectangle.angles + turns, sides, rectangle.cut)
    return rectangle


def _corrections(plain: Mask, rectangle: _Rectangles) -> tuple[float | None, Doubles]:
    """The correction of the angle (radians) and of the two sides (2,)."""
    positions = np.linspace(-0.48, 0.48, 2 * STATIONS)
    depths = np.arange(REACH, -REACH - FINE, -FINE)  # from the outside inwards
    is_plain, on_canvas = _looked_up(plain, rectangle, positions, depths)
    picture = ~is_plain[0] & on_canvas[0]  # (4, S, D)
    edges = picture.any(2) & on_canvas[0, :, :, 0] & ~picture[:, :, 0]
    ends = depths[picture.argmax(2)]  # (4, S): where the picture begins
    turns, shifts = [], np.zeros(2)
    for edge in range(4):
        length = float((rectangle.sides[0] * np.abs(TANGENTS[edge])).sum())
        line = _line(positions[edges[edge]] * length, ends[edge][edges[edge]])
        if line is not None:
            turns.append(line[0])
            shifts += np.abs(NORMALS[edge]) * line[1]
    return (float(np.mean(turns)) if turns else None), shifts


def _line(along: Doubles, away: Doubles) -> tuple[float, float] | None:
    """Slope and intercept of the line through most of the sample points."""
    for _ in range(4):
        if len(along) < LEAST_STATIONS:
            return None
        slope, height = np.polyfit(along, away, 1)
        off = np.abs(away - slope * along - height)
        near = off <= max(STRAIGHT, float(np.median(off)))
        if near.all():
            break
        along, away = along[near], away[near]
    return float(slope), float(height)
