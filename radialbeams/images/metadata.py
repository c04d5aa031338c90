"""Metadata: resolution, EXIF, XMP, comments, the colour profile, and parts copied as they are."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any

from PIL import ExifTags, Image, JpegImagePlugin, PngImagePlugin

from radialbeams.images import jpeg, png
from radialbeams.images.orientation import reset
from radialbeams.images.picture import Picture, PictureFields

# TIFF tags that describe how the file itself is stored.
TIFF_LAYOUT = frozenset(
    chain(
        range(254, 269),
        (273, 274, *range(277, 285), *range(288, 294), 296, 301, 317, 320, *range(322, 326)),
        (*range(332, 348), 351, *range(512, 522), *range(529, 533), 559),
    )
)
# Also not copied: tags that other fields of Picture hold (XMP, the colour profile), and tags that
# are wrong once the image is turned (further images, georeferencing, the layers of an editor).
_NOT_COPIED = TIFF_LAYOUT | {
    *(330, 700, 33550, 33922, 34264, 34675, 34735, 34736, 34737, 37724),
}
_DIRECTORIES = (ExifTags.IFD.Exif, ExifTags.IFD.GPSInfo)
_RESOLUTION, _XMP = 282, 700
# The orientation in XMP. `orientation.reset` resets the one in EXIF.
_XMP_ORIENTATION = re.compile(rb"(tiff:Orientation\s*(?:=\s*[\"']|>)\s*)[2-8]")
# Modes with the same colour space share a colour profile.
_SPACES = {
    **dict.fromkeys(("1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L"), "gray"),
    **dict.fromkeys(("P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "YCbCr"), "light"),
}


def fields_of(image: Image.Image) -> PictureFields:
    """The fields of Picture that Pillow provides for a decoded image."""
    info, name = image.info, "JPEG" if image.format == "MPO" else image.format
    return {
        "format": name,
        "icc_profile": _bytes(info.get("icc_profile")),
        "dpi": _dpi(info.get("dpi")) if _has_resolution(image) else None,
        "exif": _exif(image),
        "xmp": _xmp(info.get("xmp")),
        "comment": _bytes(info.get("comment")),
        "subsampling": max(JpegImagePlugin.get_sampling(image), 0) if name == "JPEG" else 0,
        "compression": info.get("compression") if name == "TIFF" else None,
        "lossless": name == "WEBP" and bool(info.get("lossless")),
        "more": getattr(image, "n_frames", 1) > 1,
    }


def tables_of(image: Image.Image) -> tuple[tuple[int, ...], ...]:
    """The quantisation tables of a JPEG in gray or colour; () for any other image."""
    tables = getattr(image, "quantization", None) if image.mode in ("L", "RGB") else None
    return tuple(tuple(tables[number]) for number in sorted(tables)) if tables else ()


def same_space(mode: str, other: str) -> bool:
    """Whether a colour profile for one mode is valid for the other."""
    return _SPACES.get(mode, mode) == _SPACES.get(other, other)


def tiff_tags(exif: bytes | None, xmp: bytes | None) -> bytes | None:
    """EXIF and XMP as tags for a TIFF, without those that describe the storage of another file."""
    tags = Image.Exif()
    if exif:
        tags.load(exif)
    copied = _about_the_picture(tags)
    if xmp:
        copied[_XMP] = xmp
    return copied.tobytes() if len(copied) else None


def png_info(picture: Picture) -> PngImagePlugin.PngInfo:
    info = PngImagePlugin.PngInfo()
    if picture.xmp:
        info.add_itxt("XML:com.adobe.xmp", picture.xmp.decode("utf-8", "replace"))
    return info


def carried_over(data: bytes, fields: PictureFields) -> PictureFields:
    """The fields of Picture that are copied to the new file byte for byte.

    `data` is the whole file. `fields` comes from `fields_of`; Pillow writes those.
    """
    if fields["format"] == "JPEG":
        segments = jpeg.carried_over(data, fields["comment"])
        # Further images are dropped together with their index. The video of a motion photo needs
        # no index: XMP gives its position from the end of the file.
        trailer = b"" if jpeg.has_index(data) else jpeg.trailer(data)
        return {"segments": segments, "trailer": trailer}
    if fields["format"] == "PNG":
        chunks = png.carried_over(data, resolution=fields["dpi"] is not None)
        return {"chunks": chunks, "trailer": png.trailer(data)}
    if fields["format"] == "WEBP":
        return {"trailer": data[int.from_bytes(data[4:8], "little") + 8 :]}
    return {}


def with_carried_over(data: bytes, picture: Picture, mode: str) -> bytes:
    """Adds the copied parts to an encoded file of the picture's own format and of this mode."""
    if picture.format == "JPEG":
        return jpeg.joined(data, picture.segments, picture.trailer)
    if picture.format == "PNG":
        return png.joined(data, picture.chunks, mode, picture.trailer)
    return data + picture.trailer


# --- single fields -----------------------------------------------------------------------------


def _bytes(value: Any) -> bytes | None:
    return value if isinstance(value, bytes) and value else None


def _dpi(dpi: Any) -> tuple[float, float] | None:
    """The resolution if a file can hold it; headers contain all kinds of values."""
    try:
        x, y = (float(value) for value in dpi)
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    return (x, y) if 1 <= x < 65535 and 1 <= y < 65535 else None


def _has_resolution(image: Image.Image) -> bool:
    """Whether the file has a resolution; Pillow invents one for some TIFFs and JPEGs without."""
    if image.format == "TIFF":
        return _RESOLUTION in getattr(image, "tag_v2", {})
    if image.format in ("JPEG", "MPO"):
        return bool(image.info.get("jfif_unit")) or _RESOLUTION in _tags(image)
    return True


def _tags(image: Image.Image) -> Image.Exif:
    try:
        return image.getexif()
    except Exception:  # Pillow raises many types; the pixels may still be fine
        return Image.Exif()


def _exif(image: Image.Image) -> bytes | None:
    exif = image.info.get("exif")
    if isinstance(exif, bytes):
        return reset(exif)
    if image.format == "TIFF" or "Raw profile type exif" in image.info:
        copied = _about_the_picture(_tags(image))
        return copied.tobytes() if len(copied) else None
    return None


def _about_the_picture(tags: Image.Exif) -> Image.Exif:
    copied = Image.Exif()
    for tag in tags:
        value = dict(tags.get_ifd(tag)) if tag in _DIRECTORIES else tags[tag]
        if tag not in _NOT_COPIED and _can_be_written(tag, value):
            copied[tag] = value
    return copied


def _can_be_written(tag: int, value: Any) -> bool:
    alone = Image.Exif()
    alone[tag] = value
    try:
        return bool(alone.tobytes())
    except Exception:  # one bad tag must not remove the others
        return False


def _xmp(value: Any) -> bytes | None:
    return _XMP_ORIENTATION.sub(rb"\g<1>1", value) if isinstance(value, bytes) and value else None
