"""Turns a picture with one resampling, at its full resolution and depth.

Convention: degrees, counter-clockwise as displayed, about the middle of the canvas. Multiples of
90° only move pixels, so the sides of the canvas swap for 90° and 270°, whatever the corners.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor

from radialbeams.images.metadata import same_space
from radialbeams.images.picture import (
    LARGE,
    Array,
    ImageError,
    Picture,
    checked,
    image_of,
)
from radialbeams.limits import DEFAULT

# Enlarge the canvas; cut to the largest rectangle without empty corners; keep the canvas.
Corners = Literal["expand", "crop", "same"]
Floats = NDArray[np.float32]
Turnable = TypeVar("Turnable", Picture, Image.Image, Array)

_QUARTERS = {
    90: Image.Transpose.ROTATE_90,
    180: Image.Transpose.ROTATE_180,
    270: Image.Transpose.ROTATE_270,
}
_MODES = ("L", "LA", "RGB", "RGBA")  # of 1, 2, 3, 4 channels
_ALPHA = ("LA", "RGBA")
_WITH_ALPHA = {"L": "LA", "RGB": "RGBA", "CMYK": "RGBA", "LA": "LA", "RGBA": "RGBA"}


def turn(
    picture: Turnable, degrees: float, *, corners: Corners = "expand", fill: str | None = None
) -> Turnable:
    """`picture` turned counter-clockwise, as the same type.

    `fill` is a colour's name or #rrggbb; without it corners are transparent where the picture has
    alpha and black where it has none. "transparent" gives a picture alpha.
    """
    if corners not in get_args(Corners):
        raise ValueError(f"corners must be {', '.join(get_args(Corners))}; got {corners!r}.")
    if not math.isfinite(degrees):
        raise ValueError(f"degrees must be a finite number; got {degrees}.")
    if isinstance(picture, Picture):
        return replace(picture, **_turned_fields(picture, degrees, corners, fill))
    if isinstance(picture, Image.Image):
        return _turn_image(picture, degrees, corners, fill)
    return _turn_array(checked(picture), degrees, corners, fill)


def _turned_fields(
    picture: Picture, degrees: float, corners: Corners, fill: str | None
) -> dict[str, Any]:
    deep = picture.sixteen_bit
    if deep is None:
        image = _turn_image(picture.image, degrees, corners, fill)
    else:
        if fill == "transparent" and deep.shape[2] == 3:
            deep = np.concatenate((deep, np.full_like(deep[:, :, :1], 65535)), axis=2)
        deep = _turn_array(deep, degrees, corners, fill)
        image = image_of(deep)
    same = same_space(picture.image.mode, image.mode)
    return {
        "image": image,
        "sixteen_bit": deep,
        "icc_profile": picture.icc_profile if same else None,
        "background": fill or picture.background,
    }


def _turn_image(
    image: Image.Image, degrees: float, corners: Corners, fill: str | None
) -> Image.Image:
    if fill == "transparent":
        if image.mode not in _WITH_ALPHA:
            raise ImageError(f"An image of mode {image.mode} has no alpha channel. Name a colour.")
        image = image.convert(_WITH_ALPHA[image.mode])
    degrees = degrees % 360 % 360  # the remainder of a tiny negative number is 360 itself
    if degrees % 90 == 0:
        return image.transpose(_QUARTERS[int(degrees)]) if degrees else image.copy()
    if image.mode.startswith("I;16"):  # Pillow would not interpolate
        deep = np.asarray(image).astype(np.uint16)
        return Image.fromarray(_turn_array(deep, degrees, corners, fill))
    if image.mode in ("1", "P", "PA"):
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    size = _canvas(image.size, degrees, corners)
    return image.transform(
        size,
        Image.Transform.AFFINE,
        _inverse(image.size, size, degrees),
        Image.Resampling.BICUBIC,
        fillcolor=_colour(fill, image.mode),
    )


def _turn_array(array: Array, degrees: float, corners: Corners, fill: str | None) -> Array:
    degrees = degrees % 360 % 360
    if degrees % 90 == 0:
        return np.ascontiguousarray(np.rot90(array, int(degrees) // 90))
    channels = math.prod(array.shape[2:])
    mode = _MODES[channels - 1]
    if fill == "transparent" and mode not in _ALPHA:
        raise ImageError("An array without alpha cannot be transparent. Add it, or name a colour.")
    whole = array.dtype.kind in "iu"
    largest = np.float32(np.iinfo(array.dtype).max if whole else 1)
    planes = array.reshape(*array.shape[:2], channels).astype(np.float32) / largest
    turned = _turn_planes(planes, mode, degrees, corners, fill).clip(0, 1) * largest
    if whole:
        turned = np.rint(turned)
    return turned.astype(array.dtype).reshape(*turned.shape[:2], *array.shape[2:])


def _turn_planes(
    planes: Floats, mode: str, degrees: float, corners: Corners, fill: str | None
) -> Floats:
    """(H, W, C) in [0, 1] → (H', W', C), each channel by itself."""
    if mode in _ALPHA:
        planes[:, :, :-1] *= planes[:, :, -1:]  # so that hidden colours do not bleed
    size = planes.shape[1], planes.shape[0]
    canvas = _canvas(size, degrees, corners)
    inverse = _inverse(size, canvas, degrees)
    colour = [value / 255 for value in _colour(fill, mode)]
    turned = np.stack(
        [_resampled(planes[:, :, c], canvas, inverse, colour[c]) for c in range(len(colour))],
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


def _inverse(
    before: tuple[int, int], after: tuple[int, int], degrees: float
) -> tuple[float, float, float, float, float, float]:
    """The inverse map as Pillow takes it: (x, y) → (ax + by + c, dx + ey + f).

    Coordinates run from the canvas' upper left corner, not from the middle of its first pixel.
    """
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    (x, y), (u, v) = ((width / 2, height / 2) for width, height in (before, after))
    return cos, -sin, x - cos * u + sin * v, sin, cos, y - sin * u - cos * v


def _canvas(size: tuple[int, int], degrees: float, corners: Corners) -> tuple[int, int]:
    if corners == "same":
        return size
    cos, sin = (abs(f(math.radians(degrees))) for f in (math.cos, math.sin))
    width, height = size
    if corners == "expand":
        # Up to a thousandth of a pixel is a rounding error.
        across = math.ceil(width * cos + height * sin - 1e-3)
        down = math.ceil(width * sin + height * cos - 1e-3)
        # A square at most doubles; a long strip needs a canvas that is nearly all corners.
        doubled = 2 * (width + 1) * (height + 1)
        allowed = min(2 * DEFAULT.pixels, max(LARGE, 8 * width * height))
        if across * down > max(doubled, allowed):
            raise ImageError(
                f"Turned, all of it needs a canvas of {across} × {down} pixels, which is too "
                'large. Use --crop or --same-size (corners="crop" or "same").'
            )
        return across, down
    inside = _largest_inside(width, height, cos, sin)
    return max(1, math.floor(inside[0])), max(1, math.floor(inside[1]))


def _largest_inside(width: int, height: int, cos: float, sin: float) -> tuple[float, float]:
    """Sides of the largest axis-aligned rectangle inside a turned one."""
    long, short = max(width, height), min(width, height)
    if short <= 2 * sin * cos * long:
        # Two of its corners touch the long sides, half way between them.
        along, aside = (short / 2 / sin, short / 2 / cos)
        return (along, aside) if width >= height else (aside, along)
    double = cos * cos - sin * sin
    return (width * cos - height * sin) / double, (height * cos - width * sin) / double


def _colour(fill: str | None, mode: str) -> tuple[int, ...]:
    """The fill's channels in an image of that mode."""
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
