"""Turns a picture with a single resampling, at its full resolution and bit depth.

Convention: degrees, counter-clockwise as displayed, about the middle of the canvas. Multiples of
90° only move pixels, so 90° and 270° swap the sides of the canvas, whatever `corners` is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor, ImageDraw

from radialbeams.defaults import Corners
from radialbeams.images.frames import Frame
from radialbeams.images.metadata import same_space
from radialbeams.images.picture import (
    LARGE,
    Array,
    ImageError,
    Picture,
    PictureFields,
    checked,
    image_of,
)
from radialbeams.limits import DEFAULT

Floats = NDArray[np.float32]
Turnable = TypeVar("Turnable", Picture, Image.Image, Array)

_QUARTERS = {
    90: Image.Transpose.ROTATE_90,
    180: Image.Transpose.ROTATE_180,
    270: Image.Transpose.ROTATE_270,
}
_MODES = ("L", "LA", "RGB", "RGBA")  # of 1, 2, 3, 4 channels
_ALPHA = ("LA", "RGBA")
STRAIGHT = 0.5  # degrees; a rectangle whose edges are off by less counts as axis-aligned
_WITH_ALPHA = {"L": "LA", "RGB": "RGBA", "CMYK": "RGBA", "LA": "LA", "RGBA": "RGBA"}


def turn(
    picture: Turnable,
    degrees: float,
    *,
    corners: Corners = "expand",
    fill: str | None = None,
    frame: Frame | None = None,
) -> Turnable:
    """`picture` turned counter-clockwise, as the same type.

    `fill` is the name of a colour, #rrggbb, or "transparent", which adds an alpha channel. Without
    it, new corners get the corner colour of `frame`; without a frame, they are transparent if the
    picture has alpha, and black otherwise. The area outside `frame` is not part of the picture: it
    is cropped or filled.
    """
    if corners not in get_args(Corners):
        raise ValueError(f"corners must be {', '.join(get_args(Corners))}; got {corners!r}.")
    if not math.isfinite(degrees):
        raise ValueError(f"degrees must be a finite number; got {degrees}.")
    degrees = degrees % 360 % 360  # the remainder of a tiny negative number is 360 itself
    canvas = Canvas(degrees, corners, fill, frame)
    if isinstance(picture, Picture):
        return replace(picture, **_turned_fields(picture, canvas))
    if isinstance(picture, Image.Image):
        return _turn_image(picture, canvas)
    return _turn_array(checked(picture), canvas)


@dataclass(frozen=True)
class Canvas:
    """How far a picture is turned, and how its new canvas is made."""

    degrees: float  # in [0, 360)
    corners: Corners
    fill: str | None
    frame: Frame | None

    @property
    def is_quarter(self) -> bool:
        """Whether pixels are only moved, not resampled."""
        return self.degrees % 90 == 0

    @property
    def colour(self) -> str | None:
        return self.frame.colour if self.fill is None and self.frame is not None else self.fill


def _turned_fields(picture: Picture, canvas: Canvas) -> PictureFields:
    fill = canvas.fill
    planes = picture.sixteen_bit
    if planes is None:
        image = _turn_image(picture.image, canvas)
    else:
        if fill == "transparent" and planes.shape[2] == 3:
            planes = np.concatenate((planes, np.full_like(planes[:, :, :1], 65535)), axis=2)
        planes = _turn_array(planes, canvas)
        image = image_of(planes)
    same = same_space(picture.image.mode, image.mode)
    return {
        "image": image,
        "sixteen_bit": planes,
        "icc_profile": picture.icc_profile if same else None,
        "background": fill or picture.background,
        **_turned_encoding(picture, canvas),
    }


def _turned_encoding(picture: Picture, canvas: Canvas) -> PictureFields:
    """The tables and subsampling that encode moved pixels with the least change."""
    if not canvas.is_quarter:
        return {"tables": ()}
    if canvas.degrees in (0, 180):
        return {}
    order = [8 * (n % 8) + n // 8 for n in range(64)]  # rows become columns
    tables = tuple(tuple(table[n] for n in order) for table in picture.tables)
    # The chroma of 4:2:2 has half the columns; Pillow cannot write half the rows.
    return {"tables": tables, "subsampling": 0 if picture.subsampling == 1 else picture.subsampling}


def _turn_image(image: Image.Image, canvas: Canvas) -> Image.Image:
    if canvas.fill == "transparent":
        if image.mode not in _WITH_ALPHA:
            raise ImageError(f"An image of mode {image.mode} has no alpha channel. Use a colour.")
        image = image.convert(_WITH_ALPHA[image.mode])
    if canvas.is_quarter:
        turns = _QUARTERS.get(int(canvas.degrees))
        return image.copy() if turns is None else image.transpose(turns)
    if image.mode.startswith("I;16"):  # Pillow would not interpolate
        return Image.fromarray(_turn_array(np.asarray(image).astype(np.uint16), canvas))
    if image.mode in ("1", "P", "PA"):
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    window = _window(image.size, canvas)
    colour = _colour(canvas.colour, image.mode)
    if window.outside is not None:
        below = Image.new(image.mode, image.size, colour if len(colour) > 1 else colour[0])
        image = Image.composite(image, below, _mask(image.size, window.outside))
    return image.transform(
        window.size,
        Image.Transform.AFFINE,
        _inverse(window, canvas.degrees),
        Image.Resampling.BICUBIC,
        fillcolor=colour,
    )


def _turn_array(array: Array, canvas: Canvas) -> Array:
    if canvas.is_quarter:
        return np.ascontiguousarray(np.rot90(array, int(canvas.degrees) // 90))
    channels = math.prod(array.shape[2:])
    mode = _MODES[channels - 1]
    if canvas.fill == "transparent" and mode not in _ALPHA:
        raise ImageError("An array without alpha cannot be transparent. Add alpha or use a colour.")
    integer = array.dtype.kind in "iu"
    largest = np.float32(np.iinfo(array.dtype).max if integer else 1)
    planes = array.reshape(*array.shape[:2], channels).astype(np.float32) / largest
    turned = _turn_planes(planes, mode, canvas).clip(0, 1) * largest
    if integer:
        turned = np.rint(turned)
    return turned.astype(array.dtype).reshape(*turned.shape[:2], *array.shape[2:])


def _turn_planes(planes: Floats, mode: str, canvas: Canvas) -> Floats:
    """(H, W, C) in [0, 1] → (H', W', C), each channel by itself."""
    size = planes.shape[1], planes.shape[0]
    window = _window(size, canvas)
    colour = [value / 255 for value in _colour(canvas.colour, mode)]
    if window.outside is not None:
        planes[np.asarray(_mask(size, window.outside)) == 0] = colour
    if mode in _ALPHA:
        planes[:, :, :-1] *= planes[:, :, -1:]  # so that hidden colours do not bleed
    inverse = _inverse(window, canvas.degrees)
    turned = np.stack(
        [_resampled(planes[:, :, c], window.size, inverse, colour[c]) for c in range(len(colour))],
        axis=2,
    )
    if mode in _ALPHA:
        turned[:, :, :-1] /= np.maximum(turned[:, :, -1:], np.float32(1e-6))
    return turned


def _resampled(
    plane: Floats, size: tuple[int, int], inverse: tuple[float, ...], fill: float
) -> Floats:
    image = Image.fromarray(plane)
    turned = image.transform(
        size, Image.Transform.AFFINE, inverse, Image.Resampling.BICUBIC, fillcolor=fill
    )
    return np.asarray(turned)


# --- geometry ----------------------------------------------------------------------------------


class Window(NamedTuple):
    """The new canvas: its size, and the point of the old canvas that becomes its middle."""

    size: tuple[int, int]
    middle: tuple[float, float]
    # Corners of the picture on the old canvas; the area outside them is filled. None: nothing is.
    outside: tuple[tuple[float, float], ...] | None = None


def _window(size: tuple[int, int], canvas: Canvas) -> Window:
    if canvas.frame is None:
        return Window(_canvas(size, canvas.degrees, canvas.corners), (size[0] / 2, size[1] / 2))
    return _framed(size, canvas, canvas.frame.on(size))


def _framed(size: tuple[int, int], canvas: Canvas, frame: Frame) -> Window:
    """The canvas for a framed picture: its rectangle if axis-aligned, else one that holds it."""
    rest = (frame.angle + canvas.degrees + 45) % 90 - 45  # angle of its edges to the axes, turned
    quarters = round((frame.angle + canvas.degrees - rest) / 90)
    sides = frame.sides[::-1] if quarters % 2 else frame.sides
    outline = None if frame.cut else _outline(frame)
    if canvas.corners == "same":
        return Window(size, (size[0] / 2, size[1] / 2), outline)
    if canvas.corners == "crop":
        # A cut picture is the intersection of its own canvas and its rectangle.
        whole, away = (size, canvas.degrees) if frame.cut else (sides, rest)
        inside = _floor(_largest_inside(whole[0], whole[1], *_cos_sin(away)))
        limits = _floor(sides) if frame.cut else inside
        return Window((min(inside[0], limits[0]), min(inside[1], limits[1])), frame.middle)
    if abs(rest) <= STRAIGHT:
        return Window(_floor(sides), frame.middle)
    if frame.cut:
        return Window(_canvas(size, canvas.degrees, "expand"), frame.middle, _outline(frame))
    needed = (math.ceil(sides[0]), math.ceil(sides[1]))
    return Window(_canvas(needed, rest, "expand"), frame.middle, outline)


def _outline(frame: Frame) -> tuple[tuple[float, float], ...]:
    """The corners of a rectangle, in pixels from the upper left corner of the canvas."""
    cos, sin = (f(math.radians(frame.angle)) for f in (math.cos, math.sin))
    x, y = frame.middle
    a, b = frame.sides[0] / 2, frame.sides[1] / 2
    around = ((-a, -b), (a, -b), (a, b), (-a, b))
    return tuple((x + u * cos + v * sin, y - u * sin + v * cos) for u, v in around)


def _mask(size: tuple[int, int], outline: tuple[tuple[float, float], ...]) -> Image.Image:
    mask = Image.new("L", size, 0)
    ImageDraw.Draw(mask).polygon(outline, fill=255)
    return mask


def _inverse(window: Window, degrees: float) -> tuple[float, float, float, float, float, float]:
    """The inverse map in Pillow's form: (x, y) → (ax + by + c, dx + ey + f).

    The origin is the upper left corner of the canvas, not the middle of its first pixel.
    """
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    (x, y), (u, v) = window.middle, (window.size[0] / 2, window.size[1] / 2)
    return cos, -sin, x - cos * u + sin * v, sin, cos, y - sin * u - cos * v


def _cos_sin(degrees: float) -> tuple[float, float]:
    """The absolute values of cosine and sine."""
    return abs(math.cos(math.radians(degrees))), abs(math.sin(math.radians(degrees)))


def _floor(sides: tuple[float, float]) -> tuple[int, int]:
    return max(1, math.floor(sides[0])), max(1, math.floor(sides[1]))


def _canvas(size: tuple[int, int], degrees: float, corners: Corners) -> tuple[int, int]:
    if corners == "same":
        return size
    cos, sin = _cos_sin(degrees)
    width, height = size
    if corners in ("restore", "expand"):
        # Up to a thousandth of a pixel is a rounding error.
        across = math.ceil(width * cos + height * sin - 1e-3)
        down = math.ceil(width * sin + height * cos - 1e-3)
        # The canvas of a square at most doubles; that of a long strip would be nearly all corners.
        doubled = 2 * (width + 1) * (height + 1)
        allowed = min(2 * DEFAULT.pixels, max(LARGE, 8 * width * height))
        if across * down > max(doubled, allowed):
            raise ImageError(
                f"Turning it without cropping needs a canvas of {across} × {down} pixels, which is "
                'too large. Use --crop or --same-size (corners="crop" or "same").',
                for_clients=f"Turning it without cropping needs a canvas of {across} × {down} "
                "pixels, which is too large. Send corners=crop or corners=same with the request.",
            )
        return across, down
    return _floor(_largest_inside(width, height, cos, sin))


def _largest_inside(width: float, height: float, cos: float, sin: float) -> tuple[float, float]:
    """Sides of the largest axis-aligned rectangle inside a turned one."""
    long, short = max(width, height), min(width, height)
    if short <= 2 * sin * cos * long:
        # Two of its corners touch the long sides, half way between them.
        along, aside = (short / 2 / sin, short / 2 / cos)
        return (along, aside) if width >= height else (aside, along)
    double = cos * cos - sin * sin
    return (width * cos - height * sin) / double, (height * cos - width * sin) / double


def _colour(fill: str | None, mode: str) -> tuple[int, ...]:
    """The channels of the fill colour in an image of that mode."""
    clear = fill == "transparent" or (fill is None and mode in _ALPHA)
    try:
        rgb = (0, 0, 0) if fill in (None, "transparent") else ImageColor.getrgb(str(fill))[:3]
    except ValueError as error:
        raise ValueError(
            f'fill must be "transparent" or a colour, as in "white" or "#ff8800"; got {fill!r}.'
        ) from error
    pixel: Any = Image.new("RGB", (1, 1), rgb)
    if mode in _ALPHA:
        pixel.putalpha(0 if clear else 255)
    value = pixel.convert(mode).getpixel((0, 0))
    return value if isinstance(value, tuple) else (value,)
