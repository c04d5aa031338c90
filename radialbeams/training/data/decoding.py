"""Decodes many image files into one array of bytes on all cores, and reports unreadable ones.

Some of Pillow's decoders hold Python's global lock, so threads alone leave most cores idle: large
data sets are decoded by processes that write into shared memory.
"""

from __future__ import annotations

import mmap
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from radialbeams.training.data import workers
from radialbeams.training.data.archives import read_files
from radialbeams.training.data.members import Member
from radialbeams.training.data.pixels import open_image, square_bytes

MANY = 2048  # files; from this number on, starting processes pays off
CHUNK = 256

Problems = dict[int, str]  # row → why it could not be read
DecodeTask = tuple[int, Callable[[], Image.Image]]  # a row, and a function that opens its image


def decode(
    place: Path, members: Sequence[Member], size: int, channels: int, *, many: int = 0
) -> tuple[NDArray[np.uint8], Problems]:
    """The rows that were read, (N, channels, size, size), and why the others were not.

    Processes read `many` files or more, threads fewer; 0 means MANY.
    """
    shape = (len(members), channels, size, size)
    pixels = np.frombuffer(mmap.mmap(-1, max(1, int(np.prod(shape)))), np.uint8)
    out = pixels[: int(np.prod(shape))].reshape(shape)
    # An archive is read sequentially; files, and members that open themselves, in parallel.
    separate = place.is_dir() or all(member.make for member in members)
    if workers.forkable() and separate and len(members) >= (many or MANY):
        problems = _by_processes(place, members, out)
    else:
        problems = _by_threads(place, members, out)
    readable = [row for row in range(len(members)) if row not in problems]
    if problems:
        for new, old in enumerate(readable):  # in place: indexing would double the memory
            out[new] = out[old]
    return out[: len(readable)], problems


def _by_threads(place: Path, members: Sequence[Member], out: NDArray[np.uint8]) -> Problems:
    """Decodes files in stored order, so that an archive is read once, from the front."""
    problems = dict.fromkeys(range(len(members)), "not found when it was read")

    def tasks() -> Iterator[DecodeTask]:
        yield from ((row, e.make) for row, e in enumerate(members) if e.make)
        rows = {e.path: row for row, e in enumerate(members) if not e.make}
        for path, data in read_files(place, rows) if rows else ():
            if isinstance(data, bytes):
                yield rows[path], partial(open_image, data, out.shape[-1])
            else:
                problems[rows[path]] = f"{type(data).__name__}: {data}"

    def read(task: DecodeTask) -> None:
        row, make = task
        problem = _read(row, make, out)
        if problem is None:
            problems.pop(row, None)
        else:
            problems[row] = problem

    waiting = tasks()
    with _strict(), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        while batch := list(islice(waiting, CHUNK)):  # encoded files in memory at a time
            list(pool.map(read, batch))
    return problems


def _by_processes(place: Path, members: Sequence[Member], out: NDArray[np.uint8]) -> Problems:
    """Each process reads files by path and writes its rows into shared memory."""
    problems: Problems = {}
    with workers.pool(_start_worker, place, members, out) as pool:
        for unreadable in pool.imap_unordered(_read_rows, _pieces(len(members))):
            problems |= unreadable
    return problems


# Set in a forked process only, which inherits it instead of unpickling it.
_work: tuple[Path, Sequence[Member], NDArray[np.uint8]] | None = None


def _start_worker(place: Path, members: Sequence[Member], out: NDArray[np.uint8]) -> None:
    global _work
    _work = (place, members, out)


def _pieces(count: int) -> list[range]:
    """The rows of each task: several tasks per process, so that all finish at about one time."""
    size = max(1, min(CHUNK, count // (4 * workers.count())))
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


def _read_rows(rows: range) -> Problems:
    if _work is None:
        raise RuntimeError("A process was started without its work.")
    place, members, out = _work
    problems = {}
    with _strict():
        for row in rows:
            problem = _read(row, partial(_open, place, members[row], out.shape[-1]), out)
            if problem is not None:
                problems[row] = problem
    return problems


def _open(place: Path, member: Member, size: int) -> Image.Image:
    if member.make is not None:
        return member.make()
    return open_image((place / member.path).read_bytes(), size)


def _read(row: int, make: Callable[[], Image.Image], out: NDArray[np.uint8]) -> str | None:
    """Fills the row or returns why not. Decoders may raise any exception on a damaged file."""
    try:
        out[row] = square_bytes(make(), out.shape[-1], out.shape[1])
    except UnidentifiedImageError:  # its message names a buffer, not the file
        return "not an image"
    except FileNotFoundError:
        return "not found when it was read"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _strict() -> warnings.catch_warnings[None]:
    """Turns Pillow's warning about decompression bombs into an error."""
    return warnings.catch_warnings(action="error", category=Image.DecompressionBombWarning)
