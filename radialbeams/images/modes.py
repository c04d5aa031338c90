"""The modes of images: those that can be turned by any angle, and those that files may store."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radialbeams.images.picture import ImageError

ImageInfo = dict[str, Any]  # of Pillow, by name

KEPT_MODES = ("L", "LA", "RGB", "RGBA", "CMYK", "I;16")
# Further modes that Pillow reads and writes without a change. Pixels in them can be moved, but not
# resampled. PNG has L, RGB and I;16 here because one of their colours may be transparent.
STORED_MODES = {
    "PNG": ("1", "P", "L", "RGB", "I;16"),
    "TIFF": ("1", "P"),
    "GIF": ("P", "L"),
    "BMP": ("1", "P"),
    "PPM": ("1",),
}


def can_be_stored(image: Image.Image, format: str | None) -> bool:
    """Whether a file of this format can hold the image in its own mode."""
    if image.mode not in STORED_MODES.get(format or "", ()):
        return False
    if image.mode != "P" or image.palette is None:
        return True
    # A damaged file may use colours that are not in its palette.
    colours = len(image.palette.getdata()[1]) // len(image.palette.mode)
    largest: Any = image.getextrema()[1]
    return image.palette.mode == "RGB" and bool(largest < colours)


def transparency_of(image: Image.Image) -> ImageInfo:
    """The transparency of a palette, or the colour that is transparent, as Pillow stores it."""
    return {key: value for key, value in image.info.items() if key == "transparency"}


def turnable(image: Image.Image) -> Image.Image:
    """The image in a mode that can be turned, which excludes palettes and one-bit images."""
    if image.mode == "F":
        raise floats()
    if image.mode in KEPT_MODES and "transparency" not in image.info:
        return image
    if image.mode.startswith("I"):
        return Image.fromarray(sixteen_bits(image))
    if image.has_transparency_data:
        return image.convert("LA" if image.mode == "L" else "RGBA")
    return image.convert("L" if image.mode == "1" else "RGB")


def sixteen_bits(image: Image.Image) -> NDArray[np.uint16]:
    values = np.asarray(image)
    if values.min() < 0 or values.max() > 65535:
        raise ImageError(
            "Its pixels are integers of more than 16 bits, whose range is unknown. Save it with 8 "
            "or 16 bits."
        )
    return values.astype(np.uint16)


def floats() -> ImageError:
    return ImageError("Its pixels are floats, whose range is unknown. Save it with 8 or 16 bits.")
