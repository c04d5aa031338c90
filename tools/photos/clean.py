"""One photo: its centred square, and whether it can be trained on.

A frame, a border or a letterbox rotates with the picture and so gives the angle away. It differs
from a plain sky by its end: a sky ends in an outline, a frame in a straight line.
"""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

MIN_SIDE = 150  # pixels of the shorter side
MIN_SQUASHED_SIDE = 240  # the same before squashing, which the stored file does not show
MAX_ASPECT = 2.5
FLAT = 10.0  # grey levels of standard deviation: walls, fog, black frames

PLAIN = 4.0  # a line this even, in grey levels of standard deviation, may belong to a frame
STRAIGHT = 0.7  # share of the line after a frame that is picture
# Most frames are black or white, and little else in a photo is: those may be noisier.
PLAIN_BLACK_OR_WHITE = 8.0
STRAIGHT_BLACK_OR_WHITE = 0.5
STRAIGHT_PAIR = 0.4  # the same for two opposite lines,
ALIKE = 8.0  # if they have the same colour
STEP = 16.0  # a pixel this far from the frame's colour is picture
DEEPEST = 0.35  # of the side: a deeper plain band is a background, not a frame
STARTS = (0, 3)  # lines: scanners and crops leave a sliver outside of a frame

Box = tuple[float, float, float, float]
Pixels = NDArray[np.float32]


def open_photo(data: bytes) -> Image.Image:
    """RGB, rotated according to EXIF."""
    with Image.open(io.BytesIO(data)) as image:
        return ImageOps.exif_transpose(image).convert("RGB")


def square_box(stored: tuple[int, int], native: tuple[int, int]) -> Box:
    """The centred square of the native picture, in pixels of the stored one (left, top, right,
    bottom): a rectangle where the stored one is squashed."""
    side = min(native)
    across, down = stored[0] / native[0], stored[1] / native[1]
    left, top = (native[0] - side) // 2, (native[1] - side) // 2
    return left * across, top * down, (left + side) * across, (top + side) * down


def square(image: Image.Image, native: tuple[int, int], size: int) -> Image.Image:
    """The centred square, resampled once, with the original aspect ratio."""
    box = square_box(image.size, native)
    return image.resize((size, size), Image.Resampling.LANCZOS, box=box)


def fault(image: Image.Image, native: tuple[int, int]) -> str:
    """The reason to drop the photo, or an empty string; only the centred square is checked."""
    squashed = native != image.size
    if min(native) < (MIN_SQUASHED_SIDE if squashed else MIN_SIDE):
        return "small"
    if max(native) > MAX_ASPECT * min(native):
        return "elongated"
    left, top, right, bottom = square_box(image.size, native)
    pixels = np.asarray(image.crop((round(left), round(top), round(right), round(bottom))))
    if pixels.mean(axis=2).std() < FLAT:
        return "flat"
    return "frame" if framed(pixels.astype(np.float32)) else ""


def framed(pixels: Pixels) -> str:
    """The sides of (H, W, 3) on which a frame lies, such as "top bottom", or nothing."""
    turned = pixels.transpose(1, 0, 2)
    sides = {"top": pixels, "bottom": pixels[::-1], "left": turned, "right": turned[::-1]}
    ends = {name: _straight_end(lines) for name, lines in sides.items()}
    sure = {name for name, (share, colour) in ends.items() if share >= _straight(colour)}
    for pair in (("top", "bottom"), ("left", "right")):
        (one, first), (other, second) = ends[pair[0]], ends[pair[1]]
        if min(one, other) >= STRAIGHT_PAIR and np.abs(first - second).max() < ALIKE:
            sure |= set(pair)
    return " ".join(name for name in sides if name in sure)


def _straight_end(lines: Pixels) -> tuple[float, Pixels]:
    """From the outside in: where a plain band ends, the share of the next line that is picture."""
    best, colour = 0.0, np.zeros(3, np.float32)
    deepest = int(DEEPEST * len(lines))
    for start in STARTS:
        outer = lines[start].mean(axis=0)
        plain = PLAIN_BLACK_OR_WHITE if _black_or_white(outer) else PLAIN
        if lines[start].std(axis=0).max() > plain:
            continue
        band = lines[start : deepest + 1]
        means, spreads = band.mean(axis=1), band.std(axis=1).max(axis=1)
        inside = (spreads > plain) | (np.abs(means - outer).max(axis=1) > plain)
        if not inside.any():
            continue
        # One line further than the first that differs: that one is half frame, half picture.
        picture = lines[start + int(inside.argmax()) + 1]
        share = float((np.abs(picture - outer).max(axis=1) > STEP).mean())
        if share > best:
            best, colour = share, outer
    return best, colour


def _straight(colour: Pixels) -> float:
    return STRAIGHT_BLACK_OR_WHITE if _black_or_white(colour) else STRAIGHT


def _black_or_white(colour: Pixels) -> bool:
    return bool(colour.max() < 40 or colour.min() > 225)
