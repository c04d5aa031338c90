"""The structure of a JPEG file: its segments, and the data after the end of the image.

Pillow writes the segments that it knows. All others are carried over here, byte for byte, unless
they describe how the old pixels were stored or would be false for the turned image.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

START = b"\xff\xd8"
APP0, APP1, APP2, APP8, APP11, APP13, APP14, COMMENT = (
    *(0xE0, 0xE1, 0xE2, 0xE8, 0xEB, 0xED, 0xEE, 0xFE),
)
EXIF = b"Exif\0\0"
XMP = b"http://ns.adobe.com/xap/1.0/\0"
ICC_PROFILE, MPF, PHOTOSHOP, ADOBE = b"ICC_PROFILE\0", b"MPF\0", b"Photoshop 3.0\0", b"Adobe"

_SCAN, _END = 0xDA, 0xD9
_END_MARKER = b"\xff\xd9"
# Any marker except those inside compressed data: a stuffed 0xFF and restart markers.
_MARKER = re.compile(rb"\xff+([\x01-\xcf\xd8-\xfe])")
# Segments that Pillow writes from fields of the picture, or that are wrong after turning: JFIF and
# its thumbnail, SPIFF with the size of the image, signed credentials of the old pixels, the index
# of further images, and the colour coding of the old scan.
_REPLACED = (
    *((APP0, b""), (APP1, EXIF), (APP1, XMP), (APP2, ICC_PROFILE), (APP2, MPF)),
    *((APP8, b"SPIFF\0"), (APP11, b""), (APP14, ADOBE)),
)
_SIGNATURES = (b"8BIM", b"PHUT", b"DCSR", b"AgHg", b"MeSa")  # of Photoshop's resources
_THUMBNAILS = (1033, 1036)  # numbers of Photoshop's resources
_CLIPPING_PATHS = range(2000, 2999)

Segment = tuple[int, bytes]  # the marker's second byte, and what follows its length


def segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """(kind, start, end) of each segment before the pixels; `start` is that of its marker."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != _SCAN:
        if data[at + 1] == 0xFF:  # a fill byte
            at += 1
            continue
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        yield data[at + 1], at, end
        at = end


def contents(data: bytes) -> list[Segment]:
    return [(kind, data[start + 4 : end]) for kind, start, end in segments(data)]


def trailer(data: bytes) -> bytes:
    """What follows the end of the image: the video of a motion photo, further images, padding."""
    at = max((end for _, _, end in segments(data)), default=2)
    if data.find(_END_MARKER, at) == len(data) - 2:
        return b""  # the usual case, and much faster than searching for each marker
    while match := _MARKER.search(data, at):
        if match[1][0] == _END:
            return data[match.end() :]
        at = match.end() + int.from_bytes(data[match.end() : match.end() + 2], "big")
    return b""  # truncated


def has_index(data: bytes) -> bool:
    """Whether the file has an index (MPF) of further images, which follow this one."""
    return any(kind == APP2 and body.startswith(MPF) for kind, body in contents(data))


def carried_over(data: bytes, comment: bytes | None) -> tuple[bytes, ...]:
    """Whole segments to copy to the turned image; Pillow itself writes `comment`."""
    segments = []
    for kind, body in contents(data):
        if not (APP0 <= kind <= 0xEF or kind == COMMENT) or is_replaced(kind, body):
            continue
        if kind == COMMENT and body == comment:
            comment = None
            continue
        if kind == APP13 and body.startswith(PHOTOSHOP):
            body = _without_stale_resources(body)
        if body:
            segments.append(bytes((0xFF, kind)) + (len(body) + 2).to_bytes(2, "big") + body)
    return tuple(segments)


def is_replaced(kind: int, body: bytes) -> bool:
    return any(kind == other and body.startswith(start) for other, start in _REPLACED)


def joined(data: bytes, carried: tuple[bytes, ...], trailer: bytes) -> bytes:
    """A JPEG with more segments after its first ones, and with data after its end."""
    if not (carried or trailer):
        return data
    at = 2
    for kind, start, end in segments(data):
        if not APP0 <= kind <= 0xEF:
            break
        at = max(end, start)
    return b"".join((data[:at], *carried, data[at:], trailer))


# --- Photoshop's resources, which hold IPTC among others ---


def resources(body: bytes) -> list[tuple[int, bytes]] | None:
    """(number, whole resource) of each; None if they cannot be parsed."""
    if not body.startswith(PHOTOSHOP):
        return None
    at, blocks = len(PHOTOSHOP), []
    while at + 12 <= len(body):
        name = body[at + 6] + 1
        size_at = at + 6 + name + name % 2
        size = int.from_bytes(body[size_at : size_at + 4], "big")
        end = size_at + 4 + size
        if body[at : at + 4] not in _SIGNATURES or end > len(body):
            return None
        end = min(end + size % 2, len(body))
        blocks.append((int.from_bytes(body[at + 4 : at + 6], "big"), body[at:end]))
        at = end
    return blocks if not body[at:].strip(b"\0") else None


def is_stale(number: int) -> bool:
    """Whether a resource is a thumbnail or a clipping path of the unturned image."""
    return number in _THUMBNAILS or number in _CLIPPING_PATHS


def is_thumbnail(number: int) -> bool:
    return number in _THUMBNAILS


def _without_stale_resources(body: bytes) -> bytes:
    blocks = resources(body)
    if blocks is None or not any(is_stale(number) for number, _ in blocks):
        return body
    current = [block for number, block in blocks if not is_stale(number)]
    return PHOTOSHOP + b"".join(current) if current else b""
