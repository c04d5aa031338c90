"""Finds the JPEG preview inside a camera's raw file.

Raw files are looked at through the largest preview that the camera has stored in them, and are
never written. Most of them are TIFF files: their directories say where the previews are. Without
a preview there (Olympus keeps it in its private notes), the file is searched for the start of a
JPEG. The file may be hostile, so every count, offset and length is limited before it is used.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from radialbeams.images.picture import ImageError

SUFFIXES = (
    *(".cr2", ".nef", ".nrw", ".arw", ".sr2", ".srf", ".dng", ".raf", ".orf", ".rw2"),
    *(".pef", ".srw", ".erf", ".3fr"),
)
FORMAT = "RAW"  # the format of a picture that was read from a preview
NOT_WRITTEN = (
    "It is a camera's raw file, which is only read, through its preview, and never written. Write "
    'the upright preview as a JPEG (--format jpeg, format="jpeg"), or develop the file first.'
)
NOT_SENT = (
    "It is a camera's raw file, which is only read, through its preview, and never written. Send "
    "format=jpeg with the request to get the upright preview as a JPEG."
)
_NO_PREVIEW = "It is a camera's raw file without a JPEG preview. Develop it to JPEG or TIFF first."

MOST_DIRECTORIES, MOST_ENTRIES, MOST_VALUES = 64, 512, 64
MOST_BYTES = 64 * 2**20  # of a preview
MOST_SEGMENTS = 256  # of a JPEG before its frame header
MOST_STARTS = 64  # of a JPEG that are tried in a search
SEARCHED = 128 * 2**20  # bytes
_CHUNK = 2**20

_STARTS = {  # byte order of the TIFF inside, by the first bytes
    **{b"II*\0": "<", b"MM\0*": ">"},
    **{b"IIRO": "<", b"IIRS": "<", b"MMOR": ">", b"IIU\0": "<"},  # Olympus, Panasonic
}
_PLAIN = (b"II*\0", b"MM\0*")  # of ordinary TIFF files, too
_FUJIFILM, _FUJIFILM_PREVIEW = b"FUJIFILMCCD-RAW ", 84  # offset and length of its preview
_CANON_CR2, _CANON_CR3 = b"CR\x02", b"ftypcrx "
_SIZES = {1: 1, 3: 2, 4: 4, 7: 1, 13: 4}  # bytes of a value, by its type in a directory
_FORMS = {1: "B", 3: "H", 4: "I", 7: "B", 13: "I"}
_PHOTOMETRIC, _STRIPS, _ORIENTATION, _STRIP_BYTES = 0x106, 0x111, 0x112, 0x117
_SUBDIRECTORIES, _JPEG, _JPEG_BYTES, _DNG_VERSION = 0x14A, 0x201, 0x202, 0xC612
_PANASONIC_JPEG = 0x2E
_SENSOR = (32803, 34892)  # photometric interpretations: colour filter array, linear raw
_FRAMES = (0xC0, 0xC1, 0xC2)  # the lossy JPEGs that every decoder reads
_OTHER_FRAMES = (0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF)  # sensor data are 0xC3
_SCAN = 0xDA


@dataclass(frozen=True)
class Preview:
    jpeg: bytes
    orientation: int | None  # of the raw file, as in EXIF; None: that of the preview applies


@dataclass(frozen=True)
class _Entry:
    """One tag of a directory: a type, and where its values lie in the file."""

    type: int
    count: int
    place: int


_Directory = dict[int, _Entry]
_Place = tuple[int, int]  # offset and length


def preview_of(file: BinaryIO) -> Preview | None:
    """The largest preview of a raw file; None for other files. The file must be seekable."""
    start = _bytes_at(file, 0, 128)
    if start[4:12] == _CANON_CR3:
        raise ImageError(
            "It is a Canon CR3 raw file, whose preview cannot be read here. Convert it to DNG or "
            "JPEG first."
        )
    if start.startswith(_FUJIFILM):
        at, length = struct.unpack_from(">II", start, _FUJIFILM_PREVIEW)
        return Preview(_largest(file, [(at, length)]), None)
    order = _STARTS.get(start[:4])
    if order is None or len(start) < 8:
        return None
    (first,) = struct.unpack_from(order + "I", start, 4)
    directories = list(_directories(file, order, first))
    if not directories or not _is_raw(file, order, start, directories):
        return None
    places = [place for directory in directories for place in _places(file, order, directory)]
    orientation = next(_values(file, order, directories[0].get(_ORIENTATION)), None)
    return Preview(_largest(file, places), orientation)


def is_raw(file: BinaryIO) -> bool:
    """Whether it is a raw file, also one without a usable preview."""
    try:
        return preview_of(file) is not None
    except ImageError:
        return True


def _is_raw(file: BinaryIO, order: str, start: bytes, directories: list[_Directory]) -> bool:
    if start[:4] not in _PLAIN or start[8:11] == _CANON_CR2:
        return True
    if any(_DNG_VERSION in directory for directory in directories):
        return True
    return any(
        next(_values(file, order, directory.get(_PHOTOMETRIC)), None) in _SENSOR
        for directory in directories
    )


# --- directories -------------------------------------------------------------------------------


def _directories(file: BinaryIO, order: str, first: int) -> Iterator[_Directory]:
    """The chain of directories and all below them, each once."""
    waiting, visited = [first], {0}
    while waiting and len(visited) <= MOST_DIRECTORIES:
        at = waiting.pop(0)
        if at in visited:
            continue
        visited.add(at)
        head = _bytes_at(file, at, 2)
        count = struct.unpack(order + "H", head)[0] if len(head) == 2 else 0
        if not 0 < count <= MOST_ENTRIES:
            continue
        content = _bytes_at(file, at + 2, 12 * count + 4)
        directory = dict(_entries(content[: 12 * count], order, at + 2))
        yield directory
        waiting += _values(file, order, directory.get(_SUBDIRECTORIES))
        if len(content) == 12 * count + 4:
            waiting.append(struct.unpack_from(order + "I", content, 12 * count)[0])


def _entries(content: bytes, order: str, at: int) -> Iterator[tuple[int, _Entry]]:
    for place in range(0, len(content) - 11, 12):
        tag, kind, count, value = struct.unpack_from(order + "HHII", content, place)
        inline = count * _SIZES.get(kind, 8) <= 4
        yield tag, _Entry(kind, count, at + place + 8 if inline else value)


def _values(file: BinaryIO, order: str, entry: _Entry | None) -> Iterator[int]:
    if entry is None or entry.type not in _SIZES or entry.count > MOST_VALUES:
        return
    content = _bytes_at(file, entry.place, entry.count * _SIZES[entry.type])
    if len(content) == entry.count * _SIZES[entry.type]:
        yield from struct.unpack(f"{order}{entry.count}{_FORMS[entry.type]}", content)


def _places(file: BinaryIO, order: str, directory: _Directory) -> Iterator[_Place]:
    """Where a directory says that there is a JPEG; sensor data are sorted out later."""
    for start, length in ((_JPEG, _JPEG_BYTES), (_STRIPS, _STRIP_BYTES)):
        starts = list(_values(file, order, directory.get(start)))
        lengths = list(_values(file, order, directory.get(length)))
        if len(starts) == len(lengths) == 1:
            yield starts[0], lengths[0]
    whole = directory.get(_PANASONIC_JPEG)
    if whole is not None:
        yield whole.place, whole.count


# --- previews ----------------------------------------------------------------------------------


def _largest(file: BinaryIO, places: list[_Place]) -> bytes:
    """The preview with the most pixels; without any, that of a search through the file."""
    sizes = [(_pixels(file, *place), place) for place in places]
    if not any(pixels for pixels, _ in sizes):
        sizes = [(_pixels(file, *place), place) for place in _searched(file)]
    pixels, (at, length) = max(sizes, default=(0, (0, 0)))
    if not pixels:
        raise ImageError(_NO_PREVIEW)
    return _bytes_at(file, at, min(length, MOST_BYTES))


def _pixels(file: BinaryIO, at: int, length: int) -> int:
    """Width times height in the frame header; 0 if it is not a JPEG that can be decoded."""
    end = at + length
    if _bytes_at(file, at, 2) != b"\xff\xd8":
        return 0
    at += 2
    for _ in range(MOST_SEGMENTS):
        head = _bytes_at(file, at, 9)
        if len(head) < 9 or head[0] != 0xFF or at + 9 > end:
            return 0
        if head[1] in _FRAMES:
            height, width = struct.unpack_from(">HH", head, 5)
            return height * width if head[4] == 8 else 0
        if head[1] in _OTHER_FRAMES or head[1] == _SCAN:
            return 0
        at += 2 + struct.unpack_from(">H", head, 2)[0]
    return 0


def _searched(file: BinaryIO) -> Iterator[_Place]:
    """The first places that look like the start of a JPEG, each with all that follows it."""
    starts, at, before = 0, 0, b""
    file.seek(0)
    while starts < MOST_STARTS and at < SEARCHED:
        chunk = file.read(_CHUNK)
        if not chunk:
            return
        content = before + chunk
        place = content.find(b"\xff\xd8\xff")
        while place >= 0 and starts < MOST_STARTS:
            yield at - len(before) + place, MOST_BYTES
            starts += 1
            place = content.find(b"\xff\xd8\xff", place + 1)
        at, before = at + len(chunk), content[-2:]
        file.seek(at)  # others have read in between


def _bytes_at(file: BinaryIO, at: int, length: int) -> bytes:
    """Up to `length` bytes; fewer at the end of the file."""
    file.seek(at)
    return file.read(length)
