"""Image files, bytes, arrays and open images in; the picture as it is meant to be seen out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from io import SEEK_CUR, SEEK_END, BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, JpegImagePlugin, UnidentifiedImageError

from radialbeams.images.orientation import TRANSPOSES, orientation_of, reset
from radialbeams.images.picture import (
    LARGE,
    MAX_PIXELS,
    ImageError,
    Picture,
    Source,
    eight_bits,
    image_of,
)

# A large picture of which each byte would hold more pixels than this is blank at best; most are
# a few bytes with a header that is meant to use up all memory.
MAX_PIXELS_PER_BYTE = 4_000
# Those that Pillow always has in memory come first. None of them starts another program, as
# PostScript would.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "PPM", "WEBP", "TIFF", "AVIF", "JPEG2000", "ICO")
NAMES = "JPEG, PNG, WebP, TIFF, GIF, BMP, AVIF"
KEPT_MODES = ("L", "LA", "RGB", "RGBA", "CMYK", "I;16")
# What a TIFF says about the picture rather than about how its own bytes lie.
TIFF_TAGS = (270, 271, 272, 305, 306, 315, 33432)


def read(source: Source, *, first_frame: bool = False) -> Picture:
    """The whole picture at its full depth, with what goes back into its file."""
    with _in_plain_words(), _opened(source, first_frame) as image:
        image.load()
        fields = _fields(image)
        seen = _kept_mode(_upright(image))
        seen.info = {k: fields[k] for k in ("icc_profile", "dpi", "exif") if fields.get(k)}
        return Picture(seen, **fields)


def read_small(source: Source, side: int, *, first_frame: bool = False) -> Image.Image:
    """What a model looks at, in RGB; in RGBA where some of it may be transparent.

    A JPEG is decoded at a half, a quarter or an eighth of its size where its shorter side stays
    2 · `side` or more; other pictures come as large as they are.
    """
    with _in_plain_words(), _opened(source, first_frame) as image:
        if not isinstance(source, Image.Image):  # a draft changes the image itself
            image.draft(None, (2 * side, 2 * side))
        image.load()
        return _eight_bit_colour(_upright(image))


# --- opening -----------------------------------------------------------------------------------


@contextmanager
def _opened(source: Source, first_frame: bool) -> Iterator[Image.Image]:
    """The image with only its header read; a file that was opened here is closed here."""
    if isinstance(source, np.ndarray):
        yield image_of(source)
    elif isinstance(source, Image.Image):
        yield _allowed(source, first_frame)
    else:
        with _stream(source) as stream:
            count = stream.seek(0, SEEK_END)
            if not count:
                raise ImageError("It is empty: 0 bytes. Get it again from where it came from.")
            stream.seek(0)
            with Image.open(stream, formats=FORMATS) as image:
                if image.format == "WEBP":
                    image.info["lossless"] = _is_lossless(stream)
                _check_claim(image, count)
                yield _allowed(image, first_frame)


def _stream(source: Any) -> Any:
    if isinstance(source, str | Path):
        return open(source, "rb")
    if isinstance(source, bytes):
        return BytesIO(source)
    if hasattr(source, "read"):
        return BytesIO(source.read())  # a pipe cannot go back to its start
    raise ImageError(
        "Expected a path, bytes, a binary file, a Pillow image or a numpy array; "
        f"got {type(source).__name__}."
    )


def _is_lossless(stream: Any) -> bool:
    """Whether a WebP's pixels are in a chunk of the kind that loses nothing."""
    stream.seek(12)
    while len(head := stream.read(8)) == 8:
        kind, length = head[:4], int.from_bytes(head[4:], "little")
        if kind in (b"VP8 ", b"VP8L"):
            return bool(kind == b"VP8L")
        stream.seek(length + length % 2, SEEK_CUR)
    return False


def _check_claim(image: Image.Image, count: int) -> None:
    """Before anything is decoded: `count` bytes, and what their header says."""
    pixels = math.prod(image.size)
    if pixels > MAX_PIXELS:
        raise _too_large()
    if pixels > max(LARGE, MAX_PIXELS_PER_BYTE * count):
        raise ImageError(
            f"Its header claims {pixels // 1_000_000} million pixels, which its {count} bytes "
            "cannot hold unless it is blank. Get a fresh copy."
        )


def _allowed(image: Image.Image, first_frame: bool) -> Image.Image:
    # A camera's MPO holds one picture, and beside it what only its own software uses.
    several = getattr(image, "is_animated", False) and image.format != "MPO"
    if several and not first_frame:
        raise ImageError(
            "It has several frames or pages. Ask for the first with --first-frame "
            "(first_frame=True), or save the one you mean as an image of its own."
        )
    return image


def _too_large() -> ImageError:
    return ImageError(
        f"Its header claims more than {MAX_PIXELS // 1_000_000} million pixels, or more than "
        "Pillow allows. Make it smaller first."
    )


@contextmanager
def _in_plain_words() -> Iterator[None]:
    """Whatever goes wrong with an image is an ImageError. Pillow raises nearly anything."""
    try:
        yield
    except ImageError:
        raise
    except FileNotFoundError as error:
        raise ImageError("There is no such file. Check the path.") from error
    except PermissionError as error:
        raise ImageError("It may not be read. Change its permissions or copy it.") from error
    except IsADirectoryError as error:
        raise ImageError("It is a folder. Name the files in it.") from error
    except UnidentifiedImageError as error:
        raise ImageError(
            f"It is no image, or of a kind that is not read here. Known are {NAMES}."
        ) from error
    except Image.DecompressionBombError as error:
        raise _too_large() from error
    except MemoryError as error:
        raise ImageError("There is not enough memory for it. Make it smaller first.") from error
    except Exception as error:
        raise ImageError(f"It is damaged or cut short{_why(error)}. Get a fresh copy.") from error


def _why(error: Exception) -> str:
    """What Pillow says, on one line; an error of the system might name the path."""
    text = "" if isinstance(error, OSError) and error.filename else str(error)
    line = text.strip().split("\n")[0].rstrip(".")
    return f" ({line})" if line else ""


# --- as it is meant to be seen -----------------------------------------------------------------


def _upright(image: Image.Image) -> Image.Image:
    method = TRANSPOSES.get(orientation_of(image))
    return image.copy() if method is None else image.transpose(method)


def _kept_mode(image: Image.Image) -> Image.Image:
    """In a mode that can be turned; palettes and single bits cannot."""
    if image.mode == "F":
        raise _floats()
    if image.mode in KEPT_MODES and "transparency" not in image.info:
        return image
    if image.mode.startswith("I"):
        return Image.fromarray(np.asarray(image).clip(0, 65535).astype(np.uint16))
    if image.has_transparency_data:
        return image.convert("LA" if image.mode == "L" else "RGBA")
    return image.convert("L" if image.mode == "1" else "RGB")


def _eight_bit_colour(image: Image.Image) -> Image.Image:
    if image.mode in ("RGB", "RGBA") and "transparency" not in image.info:
        return image
    if image.mode == "F":
        raise _floats()
    if image.mode.startswith("I"):
        image = Image.fromarray(eight_bits(np.asarray(image).clip(0, 65535)))
    return image.convert("RGBA" if image.has_transparency_data else "RGB")


def _floats() -> ImageError:
    return ImageError("Its pixels are floats of unknown range. Save it with 8 or 16 bits.")


# --- what goes back into the file --------------------------------------------------------------


def _fields(image: Image.Image) -> dict[str, Any]:
    info, name = image.info, "JPEG" if image.format == "MPO" else image.format
    icc = info.get("icc_profile")
    return {
        "format": name,
        "icc_profile": icc if isinstance(icc, bytes) and icc else None,
        "dpi": _dpi(info.get("dpi")),
        "exif": _exif(image),
        "subsampling": max(JpegImagePlugin.get_sampling(image), 0) if name == "JPEG" else 0,
        "compression": info.get("compression") if name == "TIFF" else None,
        "lossless": name == "WEBP" and bool(info.get("lossless")),
    }


def _dpi(dpi: Any) -> tuple[float, float] | None:
    """Two numbers that a file can hold, or nothing: headers say all kinds of things."""
    try:
        x, y = (float(value) for value in dpi)
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    return (x, y) if 1 <= x < 65535 and 1 <= y < 65535 else None


def _exif(image: Image.Image) -> bytes | None:
    found = image.info.get("exif")
    if isinstance(found, bytes):
        return reset(found)
    if image.format != "TIFF":
        return None
    kept = Image.Exif()
    for tag, value in image.getexif().items():
        if tag in TIFF_TAGS and isinstance(value, str):
            kept[tag] = value
    return kept.tobytes() if len(kept) else None
