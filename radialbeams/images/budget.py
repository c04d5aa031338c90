"""Estimates the memory for an image from its header, and refuses it before it is decoded.

The factors are bytes of address space per pixel at the peak, measured while an image is turned by
45° on an enlarged canvas and written in its own format, and rounded up.
"""

from __future__ import annotations

import math

from PIL import Image

from radialbeams.images.picture import LARGE, ImageError
from radialbeams.limits import GIB, MIB, Limits

# A large image with more pixels per byte than this is blank at best. Most such files are a few
# bytes whose header is meant to exhaust the memory.
MAX_PIXELS_PER_BYTE = 4_000
VIEW = 20
TURNED = {
    **{"JPEG": 16, "MPO": 16, "RAW": 16},
    **{"WEBP": 85, "AVIF": 105, "HEIF": 105, "JXL": 130, "JPEG2000": 130},
}
TURNED_OTHERS = 42
TURNED_SIXTEEN_BIT = 115  # colour; numpy holds it as floats while it is turned
COEFFICIENTS = 6  # kept in memory for each pixel of a progressive JPEG, even if decoded smaller


def check_file(size: int, limits: Limits) -> None:
    if size > limits.file_size:
        raise _limit_error(
            f"Expected a file of at most {limits.file_size / MIB:,.0f} MiB; got "
            f"{size / MIB:,.0f} MiB or more.",
            "Raise the limit with --max-file-size (Limits(file_size=…)), or save it smaller.",
        )


def check_pixels(size: tuple[int, int], count: int, limits: Limits) -> None:
    """Checks the `size` in the header of a file of `count` bytes."""
    pixels = math.prod(size)
    if pixels > limits.pixels:
        raise too_many_pixels(limits, pixels)
    if pixels > max(LARGE, MAX_PIXELS_PER_BYTE * count):
        raise ImageError(
            f"Its header claims {pixels // 1_000_000} million pixels, which its {count} bytes "
            "cannot hold unless it is blank. Get a fresh copy."
        )


def check_view(image: Image.Image, whole: tuple[int, int], limits: Limits) -> None:
    """Checks the memory for a view.

    `whole` is the size in the file; the image may be set to be decoded at a smaller size.
    """
    needed = VIEW * math.prod(image.size)
    if image.info.get("progressive"):
        needed += COEFFICIENTS * math.prod(whole)
    _check_memory(needed, whole, limits)


def check_turning(image: Image.Image, raw: str, limits: Limits) -> None:
    """Checks the memory for turning; `raw` is the raw mode of sixteen-bit colour, otherwise ""."""
    factor = TURNED_SIXTEEN_BIT if raw else TURNED.get(str(image.format), TURNED_OTHERS)
    if image.info.get("progressive"):
        factor += COEFFICIENTS
    _check_memory(factor * math.prod(image.size), image.size, limits)


def too_many_pixels(limits: Limits, pixels: int | None = None) -> ImageError:
    """The error for too many pixels; `pixels` is None if Pillow applied its own limit."""
    most = f"{limits.pixels / 1e6:,.0f} million"
    if pixels is None:
        return ImageError(
            f"It has more pixels than Pillow allows; the limit here is {most}. Make it smaller, "
            "or raise PIL.Image.MAX_IMAGE_PIXELS.",
            for_clients="It has too many pixels. Make the image smaller.",
        )
    return _limit_error(
        f"Expected at most {most} pixels; its header claims {pixels / 1e6:,.0f} million pixels.",
        "Raise the limit with --max-pixels (Limits(pixels=…)), or make it smaller.",
    )


def out_of_memory(limits: Limits) -> ImageError:
    return _limit_error(
        "There is not enough memory for it; the limit for one image is "
        f"{limits.memory / GIB:,.1f} GiB.",
        "Raise it with --max-memory (Limits(memory=…)), or make the image smaller.",
    )


def _check_memory(needed: int, size: tuple[int, int], limits: Limits) -> None:
    if needed > limits.memory:
        raise _limit_error(
            f"Expected an image that needs at most {limits.memory / GIB:,.1f} GiB of memory; its "
            f"{size[0]} × {size[1]} pixels need about {needed / GIB:,.1f} GiB.",
            "Raise the limit with --max-memory (Limits(memory=…)), or make it smaller.",
        )


def _limit_error(problem: str, remedy: str) -> ImageError:
    """An error about a limit, which clients of the service cannot raise."""
    return ImageError(f"{problem} {remedy}", for_clients=f"{problem} Make the image smaller.")
