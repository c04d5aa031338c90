"""Reads and resets the EXIF orientation, and sets it in a JPEG without re-encoding.

Convention: the value of the tag says how the stored image must be transposed for display, as in
TRANSPOSES; a quarter turn is counter-clockwise as displayed.
"""

from __future__ import annotations

import struct
from io import BytesIO

from PIL import Image

from radialbeams.images import jpeg
from radialbeams.images.picture import ImageError

ORIENTATION = 0x0112
TRANSPOSES = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# Each quarter turn leads to the next value of a cycle: one for unmirrored images, one for mirrored.
CYCLES = ((1, 8, 3, 6), (2, 5, 4, 7))
LONGEST_EXIF = 65533  # of a JPEG's segment
_HEADER = jpeg.EXIF
_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}


def orientation_of(image: Image.Image) -> int:
    """1 … 8. A tag that cannot be read counts as 1, since the pixels may still be fine."""
    try:
        value = image.getexif().get(ORIENTATION, 1)
    except Exception:
        return 1
    return value if value in TRANSPOSES else 1


def turned(orientation: int, quarter_turns: int) -> int:
    """The value of the tag for an image with `orientation` after more quarter turns."""
    cycle = CYCLES[0] if orientation in CYCLES[0] else CYCLES[1]
    return cycle[(cycle.index(orientation) + quarter_turns) % 4]


def reset(exif: bytes) -> bytes | None:
    """The EXIF data with orientation 1; None if they cannot be parsed."""
    try:
        return _with_value(exif, 1)
    except (struct.error, ValueError, IndexError):
        return None


def quarter_turned(data: bytes, quarter_turns: int) -> bytes | None:
    """A JPEG turned by its tag alone; None for other formats, or if the tag does not fit."""
    if not data.startswith(jpeg.START):
        return None
    try:
        return set_orientation(data, quarter_turns)
    except NoRoom:
        return None


class NoRoom(ImageError):
    """The tag cannot be set without damage; the pixels can be turned instead."""


def set_orientation(data: bytes, quarter_turns: int) -> bytes:
    """A JPEG that is displayed with more quarter turns; its compressed pixels are unchanged."""
    if not data.startswith(jpeg.START):
        raise ImageError("Only a JPEG can be turned by its EXIF tag alone; this is not a JPEG.")
    segments = list(jpeg.segments(data))
    ranges = [(start, end) for kind, start, end in segments if _is_exif(data, kind, start)]
    if ranges:
        start, end = ranges[0]
        exif = data[start + 4 : end]
    else:
        # A JFIF segment must stay the first.
        start = end = next((end for kind, _, end in segments if kind == jpeg.APP0), 2)
        exif = b""
    value = turned(_stored(data), quarter_turns)
    try:
        exif = _with_value(exif, value)
    except (struct.error, ValueError, IndexError):
        exif = _only(value)
    if len(exif) > LONGEST_EXIF:
        raise NoRoom(
            "Its EXIF data are too long to add the orientation tag. Turn its pixels instead, or "
            "remove something large from the EXIF data, such as a preview."
        )
    if len(exif) + 4 != end - start and _has_index_before(data, segments, start):
        raise NoRoom(
            "Its index of further images (MPF) would point to the wrong bytes. Turn its pixels "
            "instead."
        )
    segment = b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif
    return data[:start] + segment + data[end:]


def _has_index_before(data: bytes, segments: list[tuple[int, int, int]], end: int) -> bool:
    """Whether an MPF index precedes `place`.

    Its offsets are relative to the index, so only growth after it makes them wrong.
    """
    return any(
        kind == jpeg.APP2 and at < end and data.startswith(jpeg.MPF, at + 4)
        for kind, at, _ in segments
    )


def _stored(data: bytes) -> int:
    try:
        with Image.open(BytesIO(data), formats=("JPEG",)) as image:
            return orientation_of(image)
    except Exception as error:
        raise ImageError("It is damaged or truncated. Get a fresh copy.") from error


def _is_exif(data: bytes, kind: int, start: int) -> bool:
    return kind == jpeg.APP1 and data[start + 4 : start + 10] == _HEADER


def _with_value(exif: bytes, value: int) -> bytes:
    """Patches the bytes in place, because maker notes contain absolute offsets."""
    if exif[:4] in _ORDERS:
        exif = _HEADER + exif  # WebP omits the header
    if exif[:6] != _HEADER:
        return _only(value)
    order = _ORDERS.get(exif[6:10])
    if order is None:
        raise ValueError("no TIFF header")
    (directory,) = struct.unpack_from(order + "I", exif, 10)
    at = 6 + directory
    (count,) = struct.unpack_from(order + "H", exif, at)
    first, last = at + 2, at + 2 + 12 * min(count, (len(exif) - at - 2) // 12)
    patched = bytearray(exif)
    if last + 4 <= len(exif):
        # The next directory describes a thumbnail, which would show the old orientation.
        struct.pack_into(order + "I", patched, last, 0)
    entry = struct.pack(order + "HHIHH", ORIENTATION, 3, 1, value, 0)
    for offset in range(first, last, 12):
        if struct.unpack_from(order + "H", exif, offset)[0] == ORIENTATION:
            patched[offset : offset + 12] = entry
            return bytes(patched)
    return bytes(patched) if value == 1 else _added(patched, first, last, entry, order)


def _added(exif: bytearray, first: int, last: int, entry: bytes, order: str) -> bytes:
    """Appends a copy of the directory with one more entry; everything else keeps its offset."""
    entries = [bytes(exif[offset : offset + 12]) for offset in range(first, last, 12)] + [entry]
    entries.sort(key=lambda item: int(struct.unpack_from(order + "H", item)[0]))
    exif += bytes(len(exif) % 2)  # directories start at even offsets
    struct.pack_into(order + "I", exif, 10, len(exif) - 6)
    exif += struct.pack(order + "H", len(entries)) + b"".join(entries) + bytes(4)
    return bytes(exif)


def _only(value: int) -> bytes:
    exif = Image.Exif()
    exif[ORIENTATION] = value
    return exif.tobytes()
