"""A picture: its pixels, and the metadata that goes back into its file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Array = NDArray[Any]  # (H, W) or (H, W, C) of uint8, uint16, or float in [0, 1]
Source = str | Path | bytes | BinaryIO | Image.Image | Array

LARGE = 4_000_000  # pixels that are always allowed, however small the file


class ImageError(ValueError):
    """One sentence for people: what is wrong with an image and what to do. It names no path."""


@dataclass(frozen=True)
class Picture:
    """An image as it is meant to be seen: its EXIF orientation has been applied."""

    image: Image.Image
    format: str | None = None  # "JPEG", "PNG", …; None if it came from no file
    icc_profile: bytes | None = None
    dpi: tuple[float, float] | None = None
    exif: bytes | None = None  # says "upright", and holds no thumbnail that would be stale
    xmp: bytes | None = None  # says "upright" too
    comment: bytes | None = None  # JPEG's or GIF's
    subsampling: int = 0  # JPEG's, as Pillow counts: 0 = 4:4:4, 1 = 4:2:2, 2 = 4:2:0
    compression: str | None = None  # TIFF's, as Pillow names it
    lossless: bool = False  # WebP's
    chunks: tuple[tuple[bytes, bytes], ...] = ()  # PNG's that no other field stands for
    segments: tuple[bytes, ...] = ()  # JPEG's that no other field stands for
    trailer: bytes = b""  # what follows the end of the image in a JPEG, PNG or WebP
    more: bool = False  # the file holds other pictures too, which are not kept
    sixteen_bit: NDArray[np.uint16] | None = (
        None  # (H, W, C): colour that `image` has in eight bits only
    )
    reduced: bool = False  # the file has sixteen bits, and they could not be had
    background: str | None = None  # what transparent parts are laid on where there is no alpha


def image_of(array: Array) -> Image.Image:
    """The array with eight bits a channel; the caller's own depth is kept where it is turned."""
    planes = checked(array)
    if planes.dtype == np.uint16:
        planes = eight_bits(planes)
    elif planes.dtype != np.uint8:
        planes = np.rint(planes * np.float32(255)).astype(np.uint8)
    return Image.fromarray(planes[:, :, 0] if planes.shape[2:] == (1,) else planes)


def eight_bits(values: NDArray[Any]) -> NDArray[np.uint8]:
    """0 … 65535 to 0 … 255, rounded; Pillow's own conversion would clip."""
    return ((values.astype(np.uint32) + 128) // 257).astype(np.uint8)


def checked(array: Array) -> Array:
    """The array itself, if it is a picture."""
    shape = array.shape
    if array.ndim not in (2, 3) or shape[2:] not in ((), (1,), (2,), (3,), (4,)) or 0 in shape:
        raise ImageError(
            "Expected an array of shape (H, W) or (H, W, C) with 1 to 4 channels; "
            f"got {shape}. Put the channels last, and pass one picture at a time."
        )
    if array.dtype not in (np.uint8, np.uint16) and array.dtype.kind != "f":
        raise ImageError(
            f"Expected an array of uint8, uint16 or float in [0, 1]; got {array.dtype}. "
            "Convert it first."
        )
    # NaN fails both comparisons.
    if array.dtype.kind == "f" and not (array.min() >= 0 and array.max() <= 1):
        raise ImageError(
            "Expected floats in [0, 1]; some lie outside. Divide by the largest value that a "
            "pixel can have, e.g. by 255."
        )
    return array
