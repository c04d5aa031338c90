"""Reads image files, bytes, arrays and Pillow images, with their EXIF orientation applied."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import SEEK_CUR, SEEK_END, BytesIO
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from radialbeams.images import budget, plugins, raw_previews
from radialbeams.images.metadata import carried_over, fields_of, same_space, tables_of
from radialbeams.images.modes import (
    can_be_stored,
    floats,
    sixteen_bits,
    transparency_of,
    turnable,
)
from radialbeams.images.orientation import ORIENTATION, TRANSPOSES, orientation_of
from radialbeams.images.picture import (
    ImageError,
    ImageSource,
    Picture,
    SeveralFrames,
    eight_bits,
    image_of,
)
from radialbeams.images.raw_previews import Preview
from radialbeams.images.sixteen_bit import SixteenBit, joined, raw_mode, readings, with_key_clear
from radialbeams.limits import DEFAULT, Limits

# Formats whose plugins Pillow always loads come first. None of them starts another program, unlike
# PostScript.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "PPM", "WEBP", "TIFF", "AVIF", "JPEG2000", "ICO")
NAMES = "JPEG, PNG, WebP, TIFF, GIF, BMP, AVIF, JPEG 2000, PPM, and raw files with a preview"
TIFF_STARTS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # the last two: of BigTIFF
SHOWN = ("icc_profile", "dpi", "exif", "xmp", "comment")  # as Pillow names them
COLOUR_MODES = ("RGB", "RGBA", "CMYK")  # in Pillow, with eight bits per channel
# Pillow decodes an image lazily and then seeks in its file. An image passed in by the caller may be
# shared between threads, so it needs a lock; images that are opened here are not shared.
_CALLERS_IMAGES = Lock()


def read(
    source: ImageSource,
    *,
    first_frame: bool = False,
    limits: Limits = DEFAULT,
    as_stored: bool = False,
) -> Picture:
    """The whole picture at its full bit depth, with the metadata to write back to its file.

    With `as_stored`, palettes and images of one bit stay what they are if their format can be
    written so, and a JPEG keeps its quantisation tables. Such a picture can be turned by multiples
    of 90° only.
    """
    with _in_plain_words(limits), _opened(source, first_frame, limits) as image:
        raw = "" if isinstance(source, Image.Image) else _sixteen_bit_colour(image)
        budget.check_turning(image, raw, limits)
        content = b"" if isinstance(source, Image.Image | np.ndarray) else _content(image)
        planes = _sixteen_bit_planes(image, raw) if raw else None
        image.load()
        fields = fields_of(image)
        fields |= carried_over(content, fields) if content else {}
        if planes is None:
            upright = _upright(image)
            stays = as_stored and can_be_stored(upright, image.format)
            pixels = upright if stays else turnable(upright)
            if not same_space(image.mode, pixels.mode):
                fields["icc_profile"] = None
        else:
            pixels = image_of(planes)
        if as_stored:
            fields["tables"] = tables_of(image)
        # A palette's transparency, or the colour that is transparent; other images have none left.
        clear = transparency_of(pixels)
        pixels.info = {key: fields[key] for key in SHOWN if fields.get(key)}
        pixels.info.update(clear.items())
        return Picture(pixels, **fields, sixteen_bit=planes, reduced=bool(raw) and planes is None)


def read_small(
    source: ImageSource,
    side: int,
    *,
    first_frame: bool = False,
    gray: bool = False,
    limits: Limits = DEFAULT,
) -> Image.Image:
    """The picture for a model's view, in RGB, or in RGBA if parts may be transparent.

    A JPEG is decoded at a half, a quarter or an eighth of its size if both sides stay at least
    2 · `side`; other formats are decoded at full size. `info["reduced"]` says which. With `gray`, a
    JPEG is decoded in gray, which leaves out the work for its colours.
    """
    with _in_plain_words(limits), _opened(source, first_frame, limits) as image:
        whole = image.size
        if not isinstance(source, Image.Image):  # `draft` would change the caller's image
            image.draft("L" if gray else None, (2 * side, 2 * side))
        budget.check_view(image, whole, limits)
        image.load()
        callers = isinstance(source, Image.Image | np.ndarray)
        small = _upright(image, shared=callers)
        if not gray or small.mode != "L" or small.has_transparency_data:
            small = _eight_bit_colour(small)
        if not callers:  # a caller's image stays as it is
            small.info["reduced"] = image.size != whole
        return small


# --- opening -----------------------------------------------------------------------------------


@contextmanager
def _opened(source: ImageSource, first_frame: bool, limits: Limits) -> Iterator[Image.Image]:
    """The image with only its header read. Files opened here are closed at the end."""
    if isinstance(source, np.ndarray):
        yield image_of(source)
    elif isinstance(source, Image.Image):
        with _CALLERS_IMAGES, _at_first_frame(_allowed(source, first_frame)) as image:
            yield image
    else:
        with _stream(source, limits) as stream:
            count = stream.seek(0, SEEK_END)
            if not count:
                raise ImageError("It is empty: 0 bytes. Get a fresh copy.")
            budget.check_file(count, limits)
            preview = raw_previews.preview_of(stream)
            if preview is not None:
                with _opened_preview(preview, limits) as image:
                    yield image
                return
            stream.seek(0)
            with _identified(stream) as image:
                if image.format == "WEBP":
                    image.info["lossless"] = _is_lossless(stream)
                budget.check_pixels(image.size, count, limits)
                yield _allowed(image, first_frame)


def _identified(stream: Any) -> Image.Image:
    formats = _formats(stream)
    try:
        return Image.open(stream, formats=formats)
    except UnidentifiedImageError:
        stream.seek(0)
        if stream.read(4) in TIFF_STARTS:
            raise ImageError(
                "This kind of TIFF is not supported, or the file is damaged. Save it with 8 or 16 "
                "bits per channel, as a plain TIFF or as PNG."
            ) from None
        raise


@contextmanager
def _opened_preview(preview: Preview, limits: Limits) -> Iterator[Image.Image]:
    with Image.open(BytesIO(preview.jpeg), formats=("JPEG",)) as image:
        budget.check_pixels(image.size, len(preview.jpeg), limits)
        image.format = raw_previews.FORMAT
        if preview.orientation is not None:
            image.getexif()[ORIENTATION] = preview.orientation
        yield image


def _formats(stream: Any) -> tuple[str, ...]:
    """The formats to try; loads a plug-in if the file needs one."""
    name = plugins.format_of(stream.read(16))
    stream.seek(0)
    if name is None:
        return FORMATS
    plugins.load(name)
    return (name,)


@contextmanager
def _at_first_frame(image: Image.Image) -> Iterator[Image.Image]:
    """The caller's image at its first frame; afterwards, its current frame is restored."""
    place = image.tell()
    if not place:
        yield image
        return
    image.seek(0)
    try:
        yield image
    finally:
        image.seek(place)


def _stream(source: Any, limits: Limits) -> Any:
    if isinstance(source, str | Path):
        return open(source, "rb")
    if isinstance(source, bytes):
        return BytesIO(source)
    if hasattr(source, "read"):
        return BytesIO(content_of(source, limits))
    name = type(source).__name__
    hint = " Tensors go to radialbeams.front.Canonicalizer." if name == "Tensor" else ""
    raise ImageError(
        f"Expected a path, bytes, a binary file, a Pillow image or a numpy array; got {name}.{hint}"
    )


def content_of(file: Any, limits: Limits = DEFAULT) -> bytes:
    """The bytes of an open file from its start; a pipe is read from where it is."""
    most = limits.file_size + 1
    if hasattr(file, "seekable") and file.seekable():
        # `read` allocates as many bytes as requested, so request no more than the file has.
        file.seek(0, SEEK_END)
        most = min(most, file.tell() + 1)
        file.seek(0)
    content = file.read(most)
    if isinstance(content, str):
        raise ImageError('The file was opened as text. Open it with open(path, "rb").')
    budget.check_file(len(content), limits)
    return bytes(content)


def _content(image: Image.Image) -> bytes:
    """The whole file of an image that is open but not yet decoded."""
    stream = image.fp  # type: ignore[attr-defined]
    place = stream.tell()
    stream.seek(0)
    content = stream.read()
    stream.seek(place)
    return bytes(content)


def _is_lossless(stream: Any) -> bool:
    """Whether a WebP is compressed without loss."""
    stream.seek(12)
    while len(head := stream.read(8)) == 8:
        kind, length = head[:4], int.from_bytes(head[4:], "little")
        if kind in (b"VP8 ", b"VP8L"):
            return bool(kind == b"VP8L")
        stream.seek(length + length % 2, SEEK_CUR)
    return False


def _allowed(image: Image.Image, first_frame: bool) -> Image.Image:
    # A camera's MPO file holds one photo, plus previews or a second view.
    several = getattr(image, "is_animated", False) and image.format != "MPO"
    if several and not first_frame:
        raise SeveralFrames(
            "It has several frames or pages. Use the first with --first-frame "
            "(first_frame=True), or save the one you need as a separate image.",
            for_clients="It has several frames or pages. Save the one you need as a separate "
            "image, or send first_frame=true with the request to use the first.",
        )
    return image


@contextmanager
def _in_plain_words(limits: Limits) -> Iterator[None]:
    """Turns every error about an image into an ImageError. Pillow raises many types."""
    try:
        yield
    except ImageError:
        raise
    except FileNotFoundError as error:
        raise ImageError("There is no such file. Check the path.") from error
    except PermissionError as error:
        raise ImageError(
            "You have no permission to read it. Change its permissions or copy it."
        ) from error
    except IsADirectoryError as error:
        raise ImageError("It is a folder. Give the files in it instead.") from error
    except UnidentifiedImageError as error:
        raise ImageError(
            f"It is not an image, or its format is not supported. Supported are {NAMES}."
        ) from error
    except Image.DecompressionBombError as error:
        raise budget.too_many_pixels(limits) from error
    except MemoryError as error:
        raise budget.out_of_memory(limits) from error
    except Exception as error:
        if "out of memory" in str(error):  # the message of Pillow's decoders
            raise budget.out_of_memory(limits) from error
        raise ImageError(f"It is damaged or truncated{_why(error)}. Get a fresh copy.") from error


def _why(error: Exception) -> str:
    """Pillow's message on one line, without system errors, which may contain the path."""
    text = "" if isinstance(error, OSError) and error.filename else str(error)
    line = text.strip().split("\n")[0].rstrip(".")
    return f" ({line})" if line else ""


# --- orientation and modes --------------------------------------------------------------------


def _upright(image: Image.Image, *, shared: bool = True) -> Image.Image:
    """A new image with its orientation applied; it may reuse the pixels of an unshared one."""
    method = TRANSPOSES.get(orientation_of(image))
    if method is not None:
        return image.transpose(method)
    return image.copy() if shared else image._new(image.im)


def _eight_bit_colour(image: Image.Image) -> Image.Image:
    if image.mode in ("RGB", "RGBA") and "transparency" not in image.info:
        return image
    if image.mode == "F":
        raise floats()
    if image.mode.startswith("I"):
        image = Image.fromarray(eight_bits(sixteen_bits(image)))
    return image.convert("RGBA" if image.has_transparency_data else "RGB")


def _sixteen_bit_colour(image: Image.Image) -> str:
    """Pillow's raw mode of colour with sixteen bits per channel; "" for any other image."""
    raw = raw_mode(image)
    return raw if ";16" in raw and image.mode in COLOUR_MODES else ""


def _sixteen_bit_planes(image: Image.Image, raw: str) -> SixteenBit | None:
    """The pixels with sixteen bits per channel, with their EXIF orientation applied."""
    images = readings(image, raw)
    if not images:
        return None
    pixels = joined([_upright(image_part) for image_part in images])
    key = image.info.get("transparency")
    return with_key_clear(pixels, key) if isinstance(key, tuple) else pixels
