"""Reads files from a folder, a zip or a tar through one interface, without unpacking to disk.

A *place* is such a folder or archive.
"""

from __future__ import annotations

import os
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Container, Iterator
from functools import partial
from pathlib import Path, PurePosixPath

from radialbeams.files import natural_order
from radialbeams.limits import DEFAULT

Names = dict[str, str]  # normalised path → path as stored in the place, in natural order

_SUFFIX = re.compile(r"\.(zip|tar|tar\.gz|tgz)$", re.IGNORECASE)
_HIDDEN = re.compile(r"(^|/)(\.|__MACOSX/)")  # macOS puts copies of hidden files into archives
_BROKEN = (OSError, EOFError, RuntimeError, tarfile.TarError, zipfile.BadZipFile, zlib.error)


def is_place(path: Path) -> bool:
    return path.is_dir() or _SUFFIX.search(path.name) is not None


def folder_name(place: Path) -> str:
    """The name of the folder, or of the archive without its suffix: `lfw` for `lfw.tar.gz`."""
    name = os.path.basename(os.path.abspath(place))
    return name if place.is_dir() else _SUFFIX.sub("", name)


def file_names(place: Path) -> Names:
    try:
        stored = {PurePosixPath(member).as_posix(): member for member, _, _ in _files(place)}
    except _BROKEN as error:
        raise ValueError(
            f"Expected a folder, or a complete zip, tar or tar.gz archive; got {place}, "
            "which is neither. Download it again, or give a folder."
        ) from error
    return _in_order({path: name for path, name in stored.items() if not is_hidden(path)})


def is_hidden(path: str) -> bool:
    return _HIDDEN.search(path) is not None


def without_top(names: Names) -> Names:
    """The names without their top folder; archives often wrap everything in one."""
    return _in_order({p.partition("/")[2]: name for p, name in names.items() if "/" in p})


def read_files(
    place: Path, wanted: Container[str], largest: int = DEFAULT.file_size
) -> Iterator[tuple[str, bytes | Exception]]:
    """Yields files in stored order; for a damaged or huge file, an exception instead of bytes."""
    for path, size, read in _files(place):
        if path in wanted:
            data: bytes | Exception
            try:
                data = read() if size <= largest else _too_large(size, largest)
            except _BROKEN as error:
                data = error
            yield path, data


def read_file(place: Path, path: str) -> bytes:
    data = dict(read_files(place, [path]))[path]
    if isinstance(data, Exception):
        raise ValueError(
            f"Expected intact files in {place}; got {path}: {data}. Download it again."
        ) from data
    return data


def _in_order(names: Names) -> Names:
    return {path: names[path] for path in sorted(names, key=natural_order)}


def _too_large(size: int, largest: int) -> ValueError:
    return ValueError(f"Expected at most {largest:,} bytes; got {size:,}. Leave it out.")


def _files(place: Path) -> Iterator[tuple[str, int, Callable[[], bytes]]]:
    """Name, size and reader of each file, in stored order: a tar.gz is unpacked front to back."""
    if place.is_dir():
        for folder, _, names in os.walk(place):
            for path in (Path(folder, name) for name in names):
                if path.is_file():
                    yield path.relative_to(place).as_posix(), path.stat().st_size, path.read_bytes
    elif zipfile.is_zipfile(place):
        with zipfile.ZipFile(place) as archive:
            files = (info for info in archive.infolist() if not info.is_dir())
            yield from ((i.filename, i.file_size, partial(archive.read, i)) for i in files)
    else:
        with tarfile.open(place) as tar:
            for member in tar:
                if member.isfile() and (file := tar.extractfile(member)) is not None:
                    yield member.name, member.size, file.read
