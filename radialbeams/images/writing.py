"""Pictures out: the bytes of a file, with what was in it beside the pixels."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

from radialbeams.images.picture import ImageError, Picture, eight_bits

QUALITY = 95  # of JPEG, WebP and AVIF: turning is to cost no more than it must
NO_ALPHA = ("JPEG", "BMP", "PPM")
ONLY_RGB = ("PNG", "WEBP", "GIF", "BMP", "PPM", "AVIF", "JPEG2000", "ICO")  # no inks
SIXTEEN_BITS = ("PNG", "TIFF", "JPEG2000", "PPM")
# Those that Pillow writes again; fax compressions hold single bits only.
TIFF_COMPRESSIONS = ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg")
LONGEST_EXIF = 65533  # of a JPEG's segment


def encode(picture: Picture, format: str | None = None, *, quality: int | None = None) -> bytes:
    """The file's bytes: in the format it came in, or PNG. The same picture, the same bytes."""
    name = (format or picture.format or "PNG").upper()
    name = {"JPG": "JPEG", "TIF": "TIFF"}.get(name, name)
    image = _writable(picture.image, name)
    options = _options(picture, name, quality)
    if image.mode != picture.image.mode:
        options.pop("icc_profile", None)  # it describes channels that are no longer there
    image = image.copy()
    image.info = {}  # Pillow would write what it finds there, deterministic or not
    stream = BytesIO()
    try:
        image.save(stream, name, **options)
    except Exception as error:
        raise ImageError(f"It cannot be written as {name} ({error}). Write PNG.") from error
    return stream.getvalue()


def _writable(image: Image.Image, name: str) -> Image.Image:
    """In a mode that the format holds."""
    if name in NO_ALPHA and image.mode in ("LA", "RGBA"):
        raise ImageError(f"{name} holds no transparency. Name a colour to fill with, or write PNG.")
    if image.mode == "I;16" and name not in SIXTEEN_BITS:
        return Image.fromarray(eight_bits(np.asarray(image)))
    if image.mode == "CMYK" and name in ONLY_RGB:
        return image.convert("RGB")
    return image


def _options(picture: Picture, name: str, quality: int | None) -> dict[str, Any]:
    kept: dict[str, Any] = {
        "icc_profile": picture.icc_profile,
        "dpi": picture.dpi,
        "exif": picture.exif,
    }
    if name in ("JPEG", "WEBP", "AVIF"):
        kept["quality"] = QUALITY if quality is None else quality
    if name == "WEBP" and picture.lossless and quality is None:
        kept |= {"lossless": True, "exact": True, "quality": None}
    if name == "JPEG":
        kept["subsampling"] = picture.subsampling
        if picture.exif and len(picture.exif) > LONGEST_EXIF:
            kept["exif"] = None
    if name == "TIFF":
        known = picture.compression in TIFF_COMPRESSIONS
        kept["compression"] = picture.compression if known else "tiff_lzw"
    return {option: value for option, value in kept.items() if value is not None}
