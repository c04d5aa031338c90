"""The chunks of a PNG file, and which of them a turned image may keep.

The specification marks chunks that stay valid when the pixels change with a lower-case fourth
letter. Of the other chunks, those that describe colours or contain text are kept.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence

Chunk = tuple[bytes, bytes]  # its name and its content

SIGNATURE = b"\x89PNG\r\n\x1a\n"
XMP = b"XML:com.adobe.xmp\0"
# Chunks that Pillow writes from fields of the picture.
WRITTEN = frozenset((b"iCCP", b"eXIf", b"tRNS", b"pHYs"))
# Chunks that are wrong for other pixels: the histogram of the palette, the position on a page, the
# time of the last change, the offsets of parts of the compressed data.
STALE = frozenset((b"hIST", b"oFFs", b"vpAg", b"tIME", b"iDOT"))
_COLOURS = frozenset((b"gAMA", b"cHRM", b"sRGB", b"cICP", b"mDCV", b"cLLI", b"sPLT", b"pCAL"))
_TEXTS = frozenset((b"tEXt", b"zTXt", b"iTXt"))
_PROFILES = b"Raw profile type "
# EXIF, XMP and colour profiles stored as text; Pillow writes them in their own chunks.
_OTHER_PROFILES = (b"exif\0", b"APP1\0", b"xmp\0", b"icc\0", b"icm\0")
_CHANNELS = {"1": 1, "L": 1, "LA": 2, "P": 3, "RGB": 3, "RGBA": 4, "I;16": 1}
_BACKGROUNDS = {"1": 2, "L": 2, "LA": 2, "P": 1, "I;16": 2}  # bytes of bKGD; otherwise 6


def chunks(data: bytes) -> Iterator[Chunk]:
    """All chunks up to IEND, including it."""
    at = len(SIGNATURE)
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        at += 12 + length
        if data[at - 8 - length : at - 4 - length] == b"IEND":
            return


def trailer(data: bytes) -> bytes:
    length = len(SIGNATURE) + sum(12 + len(body) for _, body in chunks(data))
    return data[length:]


def carried_over(data: bytes, *, resolution: bool) -> tuple[Chunk, ...]:
    """Chunks to copy to the turned image; pHYs too if it holds an aspect ratio, no resolution."""
    return tuple(
        (kind, body)
        for kind, body in chunks(data)
        if _is_kept(kind, body) or (kind == b"pHYs" and not resolution and len(body) == 9)
    )


def is_profile(kind: bytes, body: bytes) -> bool:
    """Whether a text chunk contains EXIF, XMP or a colour profile."""
    if kind not in _TEXTS:
        return False
    return body.startswith(XMP) or body.startswith(
        tuple(_PROFILES + profile for profile in _OTHER_PROFILES)
    )


def joined(data: bytes, chosen: Sequence[Chunk], mode: str, trailer: bytes) -> bytes:
    """A PNG with those of the chunks that fit its mode, and with the trailer.

    They come after the header, except for the background, which must follow the palette.
    """
    head, pixels = len(SIGNATURE) + 25, _start_of(b"IDAT", data)
    fitting = [part for part in chosen if _fits(*part, mode)]
    first = [chunk(*part) for part in fitting if part[0] != b"bKGD"]
    second = [chunk(*part) for part in fitting if part[0] == b"bKGD"]
    return b"".join((data[:head], *first, data[head:pixels], *second, data[pixels:], trailer))


def _start_of(kind: bytes, data: bytes) -> int:
    """Where the first chunk of this kind starts."""
    at = len(SIGNATURE)
    for name, body in chunks(data):
        if name == kind:
            break
        at += 12 + len(body)
    return at


def chunk(kind: bytes, body: bytes) -> bytes:
    check = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)


def _is_kept(kind: bytes, body: bytes) -> bool:
    if not kind.isalpha() or kind[:1].isupper() or kind in WRITTEN or kind in STALE:
        return False
    if kind in _TEXTS:
        return not is_profile(kind, body)
    return kind in _COLOURS or kind in (b"sBIT", b"bKGD") or kind[3:].islower()


def _fits(kind: bytes, body: bytes, mode: str) -> bool:
    """Whether a chunk fits the mode: sBIT and bKGD depend on the number of channels."""
    if kind == b"sBIT":
        return len(body) == _CHANNELS.get(mode)
    if kind == b"bKGD":
        return len(body) == _BACKGROUNDS.get(mode, 6)
    return True
