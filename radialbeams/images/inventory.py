"""Lists what a file contains besides its pixels, to find out what a turned copy has lost.

The new file itself is read, so that the result does not depend on what the writer meant to keep.
Content that would be wrong in a turned image, such as a thumbnail of the old pixels, is not listed.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from io import BytesIO

from PIL import Image, TiffTags

from radialbeams.images import jpeg, png
from radialbeams.images.metadata import TIFF_LAYOUT

# A readable name, and a digest if the bytes must stay the same (otherwise b"").
MetadataItem = tuple[str, bytes]
TRAILER = "the data after the end of the image"
_JPEG2000_IMAGE = (b"jP  ", b"ftyp", b"jp2h", b"jp2c")
# Transparency is part of the image; the others are kept where they fit its new mode.
_PNG_HINTS = (b"tRNS", b"sBIT", b"bKGD")
_AVIF_IMAGE = (b"av01", b"grid", b"Exif", b"mime")


def missing(before: bytes, after: bytes) -> list[str]:
    """Names of what the first file contains and the second, of the same format, does not."""
    if _kind(before) != _kind(after):
        return []  # the user asked for another format, which stores what it can
    lost = Counter(_metadata(before)) - Counter(_metadata(after))
    return list(dict.fromkeys(name for name, _ in lost))


def _metadata(data: bytes) -> Iterator[MetadataItem]:
    readers = {
        "JPEG": _jpeg,
        "PNG": _png,
        "WEBP": _webp,
        "TIFF": _tiff,
        "AVIF": _avif,
        "JPEG2000": _jpeg2000,
        "GIF": _gif,
    }
    reader = readers.get(_kind(data))
    return iter(()) if reader is None else reader(data)


def _kind(data: bytes) -> str:
    """The format, by the first bytes; "" for formats that contain nothing but pixels."""
    starts = {
        jpeg.START: "JPEG",
        png.SIGNATURE: "PNG",
        b"RIFF": "WEBP",
        b"II": "TIFF",
        b"MM": "TIFF",
        b"GIF8": "GIF",
    }
    boxes = {b"ftyp": "AVIF", b"jP  ": "JPEG2000"}
    names = (name for start, name in starts.items() if data.startswith(start))
    return next(names, boxes.get(data[4:8], ""))


def _verbatim(name: str, content: bytes) -> MetadataItem:
    return name, hashlib.sha256(content).digest()


def _after_the_end(content: bytes) -> Iterator[MetadataItem]:
    if content:
        yield _verbatim(TRAILER, content)


def _jpeg(data: bytes) -> Iterator[MetadataItem]:
    trailer = jpeg.trailer(data)
    items = set()
    for kind, body in jpeg.contents(data):
        if name := _profile(kind, body):
            items.add(name)
        elif kind == jpeg.APP2 and body.startswith(jpeg.MPF):
            if trailer:
                items.add("the index of further images (MPF)")
        elif kind == jpeg.APP11:
            items.add("content credentials or HDR data (APP11)")
        elif kind == jpeg.APP13 and (resources := jpeg.resources(body)) is not None:
            yield from _photoshop(resources)
        elif kind == jpeg.COMMENT:
            yield _verbatim("a comment", body)
        elif jpeg.APP0 <= kind <= 0xEF and not jpeg.is_replaced(kind, body):
            yield _verbatim(f"a segment APP{kind - jpeg.APP0}{_label(body)}", body)
    yield from ((name, b"") for name in items)
    yield from _after_the_end(trailer)


def _profile(kind: int, body: bytes) -> str:
    """The name of a segment that is rewritten, so that its bytes may differ; "" for others."""
    if kind == jpeg.APP1 and body.startswith(jpeg.EXIF):
        return "EXIF"
    if kind == jpeg.APP1 and body.startswith(jpeg.XMP):
        return "XMP"
    return "the colour profile" if kind == jpeg.APP2 and body.startswith(jpeg.ICC_PROFILE) else ""


def _photoshop(resources: list[tuple[int, bytes]]) -> Iterator[MetadataItem]:
    for number, content in resources:
        if not jpeg.is_thumbnail(number):
            name = "a clipping path" if jpeg.is_stale(number) else "IPTC" if number == 1028 else ""
            yield _verbatim(name or f"a Photoshop resource ({number})", content)


def _label(body: bytes) -> str:
    """The identifier that most segments begin with."""
    match = re.match(rb"[\x20-\x7e]{2,40}(?=\0)", body)
    return f" ({match[0].decode('ascii')})" if match else ""


def _png(data: bytes) -> Iterator[MetadataItem]:
    items = set()
    for kind, body in png.chunks(data):
        if not kind.isalpha() or kind[:1].isupper() or kind in png.STALE or kind in _PNG_HINTS:
            continue
        if kind in png.WRITTEN or png.is_profile(kind, body):
            items.add(_png_profile(kind, body))
        elif kind in (b"acTL", b"fcTL", b"fdAT"):
            items.add("the other frames")
        else:
            yield _verbatim(f"a chunk {kind.decode('ascii')}", body)
    yield from ((name, b"") for name in items)
    yield from _after_the_end(png.trailer(data))


def _png_profile(kind: bytes, body: bytes) -> str:
    if kind == b"pHYs":
        return "the resolution"
    if kind == b"iCCP" or b"type ic" in body[:24]:
        return "the colour profile"
    return "XMP" if body.startswith(png.XMP) or b"type xmp" in body[:24] else "EXIF"


def _webp(data: bytes) -> Iterator[MetadataItem]:
    names = {b"EXIF": "EXIF", b"XMP ": "XMP", b"ICCP": "the colour profile"}
    size = int.from_bytes(data[4:8], "little") + 8
    at = 12
    while at + 8 <= min(size, len(data)):
        kind, length = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if kind in names:
            yield names[kind], b""
        elif kind not in (b"VP8X", b"VP8 ", b"VP8L", b"ALPH", b"ANIM", b"ANMF"):
            body = data[at + 8 : at + 8 + length]
            yield _verbatim(f"a chunk {kind.decode('ascii', 'replace')!r}", body)
        at += 8 + length + length % 2
    yield from _after_the_end(data[size:])


def _tiff(data: bytes) -> Iterator[MetadataItem]:
    with Image.open(BytesIO(data), formats=("TIFF",)) as image:
        tags = list(getattr(image, "tag_v2", ()))
    for tag in tags:
        if tag not in TIFF_LAYOUT:
            yield f"the tag {TiffTags.lookup(tag).name} ({tag})", b""


def _boxes(data: bytes, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """(kind, start, end) of the content of each box in an ISO base media or JPEG 2000 file."""
    while at + 8 <= end:
        length, start = int.from_bytes(data[at : at + 4], "big"), at + 8
        if length == 1:
            length, start = int.from_bytes(data[at + 8 : at + 16], "big"), at + 16
        stop = min(at + length, end) if length else end
        if stop < start:
            return
        yield data[at + 4 : at + 8], start, stop
        at = stop


def _jpeg2000(data: bytes) -> Iterator[MetadataItem]:
    for kind, start, end in _boxes(data, 0, len(data)):
        if kind not in _JPEG2000_IMAGE:
            yield _verbatim(f"a box {kind.decode('ascii', 'replace')!r}", data[start:end])


def _avif(data: bytes) -> Iterator[MetadataItem]:
    """Items besides the image itself, such as a gain map, and a depth of more than eight bits."""
    for kind, start, end in _boxes(data, 0, len(data)):
        if kind != b"meta":
            continue
        for match in re.finditer(rb"infe[\x02\x03].{5,7}?([a-zA-Z0-9]{4})", data[start:end], re.S):
            if match[1] not in _AVIF_IMAGE:
                yield f"an item {match[1].decode('ascii')!r}", b""
        if depth := re.search(rb"av1C\x81.(.)", data[start:end], re.S):
            bits = 8 if not depth[1][0] & 0x40 else 12 if depth[1][0] & 0x20 else 10
            if bits > 8:
                yield f"{bits} bits per channel, of which 8 are kept", b""


def _gif(data: bytes) -> Iterator[MetadataItem]:
    with Image.open(BytesIO(data), formats=("GIF",)) as image:
        if image.info.get("comment"):
            yield "a comment", b""
    if b"\x21\xff\x0bXMP DataXMP" in data:
        yield "XMP", b""
