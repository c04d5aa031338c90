"""Encodes pictures, with the metadata of the files they came from."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

from radialbeams.images.metadata import png_info, same_space, tiff_tags, with_carried_over
from radialbeams.images.modes import transparency_of, turnable
from radialbeams.images.picture import ImageError, Picture, eight_bits
from radialbeams.images.raw_previews import FORMAT as RAW
from radialbeams.images.raw_previews import NOT_SENT, NOT_WRITTEN
from radialbeams.images.sixteen_bit import as_gray, sixteen_bit_png, sixteen_bit_tiff

QUALITY = 95  # of JPEG, WebP and AVIF
LOSSY = ("JPEG", "JPG", "AVIF", "HEIF", "JXL")  # and WebP, unless the picture's own was lossless
NO_ALPHA = ("JPEG", "BMP", "PPM")
BACKGROUND = "white"  # default colour behind transparent parts in these formats
ONLY_RGB = ("PNG", "WEBP", "GIF", "BMP", "PPM", "AVIF", "JPEG2000", "ICO", "HEIF", "JXL")  # no CMYK
SIXTEEN_BITS = ("PNG", "TIFF", "JPEG2000", "PPM")
# The compressions that Pillow can write, and those that only images of one bit have.
TIFF_COMPRESSIONS = ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg")
FAX_COMPRESSIONS = ("group3", "group4", "tiff_ccitt")
# The most bytes that fit into a segment of a JPEG.
LONGEST = {"exif": 65533, "xmp": 65504, "comment": 65533}


SaveOptions = dict[str, Any]  # keyword arguments of Pillow's `save`


def encode(picture: Picture, format: str | None = None, *, quality: int | None = None) -> bytes:
    """The bytes of a file in `format`, in the picture's own format, or in PNG; deterministic.

    In formats without alpha, the background of transparent parts is the fill colour with which
    the picture was turned, or white.
    """
    name = (format or picture.format or "PNG").upper()
    name = {"JPG": "JPEG", "TIF": "TIFF"}.get(name, name)
    if name == RAW:
        raise ImageError(NOT_WRITTEN, for_clients=NOT_SENT)
    _check_depth(picture, name)
    if name != picture.format:
        picture = replace(picture, image=turnable(picture.image))
    options = _options(picture, name, quality)
    data, mode = _encoded(picture, name, options)
    return with_carried_over(data, picture, mode) if name == picture.format else data


def is_lossy(picture: Picture, format: str | None = None) -> bool:
    """Whether `encode` changes pixels a little."""
    name = (format or picture.format or "PNG").upper()
    if name == "WEBP":
        return not picture.lossless
    return name in LOSSY or (name == "TIFF" and picture.compression == "jpeg")


def _encoded(picture: Picture, name: str, options: SaveOptions) -> tuple[bytes, str]:
    """The bytes as Pillow or numpy writes them, and the mode of the image in them."""
    planes, mode = picture.sixteen_bit, picture.image.mode
    if planes is not None and name == "PNG":
        shell = Image.new(mode, picture.image.size)
        return sixteen_bit_png(planes, _saved(shell, name, options)), mode
    if planes is not None and name == "TIFF":
        return sixteen_bit_tiff(planes, _saved(as_gray(planes), name, options)), mode
    image = _writable(picture, name)
    if not same_space(image.mode, mode):
        options.pop("icc_profile", None)
    return _saved(image, name, options), image.mode


def _saved(image: Image.Image, name: str, options: SaveOptions) -> bytes:
    image = image._new(image.im)  # shares the pixels: a copy would need a lot of memory
    image.info = {}  # Pillow would write whatever it finds there
    stream = BytesIO()
    try:
        image.save(stream, name, **options)
    except MemoryError:
        raise
    except Exception as error:
        raise ImageError(f"It cannot be written as {name} ({error}). Write PNG.") from error
    return stream.getvalue()


def _check_depth(picture: Picture, name: str) -> None:
    """Refuses to reduce sixteen bits to eight in a format that could hold sixteen."""
    if name not in SIXTEEN_BITS:
        return
    if picture.reduced:
        raise ImageError(
            f"It has 16 bits per channel, of which only 8 would be written to {name} here. Convert "
            "it to PNG with 16 bits in RGB, or to 8 bits, with another program first."
        )
    if picture.sixteen_bit is not None and name not in ("PNG", "TIFF"):
        raise ImageError(
            f"It has 16 bits per channel, of which only 8 would be written to {name} here. Write "
            'PNG, which keeps them all (--format png, format="png"), or convert it to 8 bits '
            "first.",
            for_clients=f"It has 16 bits per channel, of which only 8 would be written to {name} "
            "here. Send format=png with the request, or convert it to 8 bits first.",
        )


def _writable(picture: Picture, name: str) -> Image.Image:
    """The image in a mode that the format supports."""
    image = picture.image
    if name in NO_ALPHA and image.mode in ("LA", "RGBA"):
        if picture.background == "transparent":
            raise ImageError(f"{name} has no transparency. Fill with a colour, or write PNG.")
        return _laid_on(picture.background or BACKGROUND, image)
    if image.mode == "I;16" and name not in SIXTEEN_BITS:
        return Image.fromarray(eight_bits(np.asarray(image)))
    if image.mode == "CMYK" and name in ONLY_RGB:
        return image.convert("RGB")
    return image


def _laid_on(colour: str, image: Image.Image) -> Image.Image:
    """The image without alpha, on a background; gray stays gray."""
    below = Image.new("RGBA", image.size, colour)
    laid = Image.alpha_composite(below, image.convert("RGBA"))
    return laid.convert("L" if image.mode == "LA" else "RGB")


def _options(picture: Picture, name: str, quality: int | None) -> SaveOptions:
    options: SaveOptions = {
        "icc_profile": picture.icc_profile,
        "dpi": picture.dpi,
        "exif": picture.exif,
        "xmp": picture.xmp,
        "comment": picture.comment,
    }
    if name in ("JPEG", "WEBP", "AVIF", "HEIF", "JXL"):
        options["quality"] = QUALITY if quality is None else quality
    if name == "WEBP" and picture.lossless and quality is None:
        options |= {"lossless": True, "exact": True, "quality": None}
    if name == "JPEG":
        options["subsampling"] = picture.subsampling
        if picture.tables and quality is None and name == picture.format:
            options |= {"qtables": picture.tables, "quality": None}
        too_long = [name for name, most in LONGEST.items() if len(options[name] or b"") > most]
        options |= dict.fromkeys(too_long)
    if name in ("PNG", "GIF"):
        options |= transparency_of(picture.image)
    if name == "PNG":
        options["pnginfo"] = png_info(picture)
    if name == "TIFF":
        fax = FAX_COMPRESSIONS if picture.image.mode == "1" else ()
        is_writable = picture.compression in (*TIFF_COMPRESSIONS, *fax)
        options["compression"] = picture.compression if is_writable else "tiff_lzw"
        options["exif"] = tiff_tags(picture.exif, picture.xmp)
    return {option: value for option, value in options.items() if value is not None}
