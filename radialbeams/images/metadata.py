"""What a file holds beside its pixels: resolution, camera, comments, colour profile."""

from __future__ import annotations

import re
import struct
from itertools import chain
from typing import Any

from PIL import ExifTags, Image, JpegImagePlugin, PngImagePlugin

from radialbeams.images.orientation import reset
from radialbeams.images.picture import Picture

# Tags of a TIFF that say how its own bytes lie, or that hold in Picture's other fields, or that
# are false once it is turned (a map's place on the earth, layers of an editor).
_LAYOUT = frozenset(
    chain(
        range(254, 270),
        (273, 274, *range(277, 285), *range(288, 294), 296, 301, 317, 320, *range(322, 326)),
        (330, *range(332, 348), 351, *range(512, 522), *range(529, 533), 559, 700),
        (33550, 33922, 34264, 34675, 34735, 34736, 34737, 37724),
    )
)
_DIRECTORIES = (ExifTags.IFD.Exif, ExifTags.IFD.GPSInfo)
_RESOLUTION, _XMP = 282, 700
# What says in XMP how the picture has to be moved; EXIF's own tag is reset elsewhere.
_XMP_ORIENTATION = re.compile(rb"(tiff:Orientation\s*(?:=\s*[\"']|>)\s*)[2-8]")
# Texts of a PNG that stand for something which is read and written by itself.
_NO_TEXT = ("XML:com.adobe.xmp", "Raw profile type ")
# Modes that share a space of colours; a profile for the one is right for the other.
_SPACES = {
    **dict.fromkeys(("1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L"), "gray"),
    **dict.fromkeys(("P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "YCbCr"), "light"),
}


def fields_of(image: Image.Image) -> dict[str, Any]:
    """Picture's fields of an image that has been loaded."""
    info, name = image.info, "JPEG" if image.format == "MPO" else image.format
    return {
        "format": name,
        "icc_profile": _bytes(info.get("icc_profile")),
        "dpi": _dpi(info.get("dpi")) if _has_resolution(image) else None,
        "exif": _exif(image),
        "xmp": _xmp(info.get("xmp")),
        "comment": _bytes(info.get("comment")),
        "text": _text(image),
        "subsampling": max(JpegImagePlugin.get_sampling(image), 0) if name == "JPEG" else 0,
        "compression": info.get("compression") if name == "TIFF" else None,
        "lossless": name == "WEBP" and bool(info.get("lossless")),
        "chunks": _brightness(info) if name == "PNG" else (),
        "more": getattr(image, "n_frames", 1) > 1,
    }


def same_space(mode: str, other: str) -> bool:
    """Whether a colour profile for images of one mode holds for those of the other."""
    return _SPACES.get(mode, mode) == _SPACES.get(other, other)


def tiff_tags(exif: bytes | None, xmp: bytes | None) -> bytes | None:
    """Those that a TIFF may be given; a camera's JPEG may name its own width among them."""
    found = Image.Exif()
    if exif:
        found.load(exif)
    kept = _about_the_picture(found)
    if xmp:
        kept[_XMP] = xmp
    return kept.tobytes() if len(kept) else None


def png_info(picture: Picture) -> PngImagePlugin.PngInfo:
    """What a PNG holds beside its pixels, in chunks of its own."""
    info, xmp = PngImagePlugin.PngInfo(), picture.xmp
    for kind, content in picture.chunks:
        info.add(kind, content)
    for key, value in picture.text:
        info.add_text(key, value)
    if xmp:
        info.add_itxt("XML:com.adobe.xmp", xmp.decode("utf-8", "replace"))
    return info


# --- one by one --------------------------------------------------------------------------------


def _brightness(info: dict[Any, Any]) -> tuple[tuple[bytes, bytes], ...]:
    """gAMA and cHRM, as a PNG stores them: in steps of 1/100,000."""
    found: dict[bytes, tuple[Any, ...]] = {
        b"gAMA": (info.get("gamma"),),
        b"cHRM": info.get("chromaticity") or (None,),
    }
    return tuple(
        (kind, struct.pack(f">{len(values)}I", *(round(100_000 * value) for value in values)))
        for kind, values in found.items()
        if all(isinstance(value, int | float) and 0 <= value < 21_000 for value in values)
    )


def _bytes(value: Any) -> bytes | None:
    return value if isinstance(value, bytes) and value else None


def _dpi(dpi: Any) -> tuple[float, float] | None:
    """Two numbers that a file can hold, or nothing: headers say all kinds of things."""
    try:
        x, y = (float(value) for value in dpi)
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    return (x, y) if 1 <= x < 65535 and 1 <= y < 65535 else None


def _has_resolution(image: Image.Image) -> bool:
    """Pillow makes one up for a TIFF without, and for a JPEG whose EXIF has none."""
    if image.format == "TIFF":
        return _RESOLUTION in getattr(image, "tag_v2", {})
    if image.format in ("JPEG", "MPO"):
        return bool(image.info.get("jfif_unit")) or _RESOLUTION in _tags(image)
    return True


def _tags(image: Image.Image) -> Image.Exif:
    try:
        return image.getexif()
    except Exception:  # Pillow raises nearly anything; the pixels may still be good
        return Image.Exif()


def _exif(image: Image.Image) -> bytes | None:
    found = image.info.get("exif")
    if isinstance(found, bytes):
        return reset(found)
    if image.format == "TIFF" or "Raw profile type exif" in image.info:
        kept = _about_the_picture(_tags(image))
        return kept.tobytes() if len(kept) else None
    return None


def _about_the_picture(tags: Image.Exif) -> Image.Exif:
    kept = Image.Exif()
    for tag in tags:
        value = dict(tags.get_ifd(tag)) if tag in _DIRECTORIES else tags[tag]
        if tag not in _LAYOUT and _can_be_written(tag, value):
            kept[tag] = value
    return kept


def _can_be_written(tag: int, value: Any) -> bool:
    alone = Image.Exif()
    alone[tag] = value
    try:
        return bool(alone.tobytes())
    except Exception:  # one odd tag is not to cost the others
        return False


def _xmp(found: Any) -> bytes | None:
    return _XMP_ORIENTATION.sub(rb"\g<1>1", found) if isinstance(found, bytes) and found else None


def _text(image: Image.Image) -> tuple[tuple[str, str], ...]:
    if not isinstance(image, PngImagePlugin.PngImageFile):
        return ()
    return tuple((key, value) for key, value in image.text.items() if _is_text(key, value))


def _is_text(key: Any, value: Any) -> bool:
    usable = isinstance(key, str) and isinstance(value, str) and 0 < len(key) < 80
    return usable and not key.startswith(_NO_TEXT) and all(31 < ord(char) < 256 for char in key)
