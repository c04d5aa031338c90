"""A picture: its pixels, and the metadata that goes back into its file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Array = NDArray[Any]  # (H, W) or (H, W, C) of uint8, uint16, or float in [0, 1]
ImageSource = str | Path | bytes | BinaryIO | Image.Image | Array

LARGE = 4_000_000  # images of up to this many pixels are allowed however small the file is


class ImageError(ValueError):
    """What is wrong with an image and what to do about it; the message contains no path.

    `for_clients` is the message for clients of the service, who have no command line.
    """

    def __init__(self, message: str = "", *, for_clients: str | None = None) -> None:
        super().__init__(message)
        self.for_clients = message if for_clients is None else for_clients


class SeveralFrames(ImageError):
    """An animated image, or a file with several pages, of which the first was not asked for."""


@dataclass(frozen=True)
class Picture:
    """An image with its EXIF orientation applied."""

    image: Image.Image
    format: str | None = None  # "JPEG", "PNG", …; None if it does not come from a file
    icc_profile: bytes | None = None
    dpi: tuple[float, float] | None = None
    exif: bytes | None = None  # with orientation 1 and without a thumbnail
    xmp: bytes | None = None  # with orientation 1
    comment: bytes | None = None  # JPEG's or GIF's
    subsampling: int = 0  # JPEG's, as Pillow counts: 0 = 4:4:4, 1 = 4:2:2, 2 = 4:2:0
    # JPEG's quantisation tables of 8 × 8 numbers, row by row; (): those of a quality are used.
    tables: tuple[tuple[int, ...], ...] = ()
    compression: str | None = None  # TIFF's, as Pillow names it
    lossless: bool = False  # WebP's
    chunks: tuple[tuple[bytes, bytes], ...] = ()  # of a PNG, without those in other fields
    segments: tuple[bytes, ...] = ()  # of a JPEG, without those in other fields
    trailer: bytes = b""  # data after the end of a JPEG, PNG or WebP
    more: bool = False  # the file contains further images, which are not kept
    # (H, W, C): the same colours as in `image`, which has only eight bits per channel
    sixteen_bit: NDArray[np.uint16] | None = None
    reduced: bool = False  # the file has sixteen bits per channel, of which eight were read
    background: str | None = None  # the colour behind transparent parts in formats without alpha


PictureFields = dict[str, Any]  # fields of a Picture, by name


def image_of(array: Array) -> Image.Image:
    """The array as an image with eight bits per channel."""
    planes = checked(array)
    if planes.dtype == np.uint16:
        planes = eight_bits(planes)
    elif planes.dtype != np.uint8:
        planes = np.rint(planes * np.float32(255)).astype(np.uint8)
    return Image.fromarray(planes[:, :, 0] if planes.shape[2:] == (1,) else planes)


def eight_bits(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Maps 0 … 65535 to 0 … 255, rounded; Pillow's own conversion clips."""
    return ((values.astype(np.uint32) + 128) // 257).astype(np.uint8)


def checked(array: Array) -> Array:
    """The array itself, if it has the shape, type and range of an image."""
    shape = array.shape
    if array.ndim not in (2, 3) or shape[2:] not in ((), (1,), (2,), (3,), (4,)) or 0 in shape:
        raise ImageError(
            "Expected an array of shape (H, W) or (H, W, C) with 1 to 4 channels; "
            f"got {shape}. Put the channels last, and pass one image at a time."
        )
    if array.dtype not in (np.uint8, np.uint16) and array.dtype.kind != "f":
        raise ImageError(
            f"Expected an array of uint8, uint16 or float in [0, 1]; got {array.dtype}. "
            "Convert it first."
        )
    # NaN fails both comparisons.
    if array.dtype.kind == "f" and not (array.min() >= 0 and array.max() <= 1):
        raise ImageError(
            "Expected floats in [0, 1]; some lie outside. Divide by the largest possible pixel "
            "value, such as 255."
        )
    return array
