"""Many encoded files into one array of bytes, with every core, and why some were not read.

Some of Pillow's decoders keep Python's lock, so threads alone leave most cores idle: a large set
is read by processes that write into memory which they share.
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

MANY = 2048  # files from which on processes are worth their start
CHUNK = 256

Problems = dict[int, str]  # by row
Job = tuple[int, Callable[[], Image.Image]]  # a row, and what gives its image


def decode(
    place: Path, entries: Sequence[Member], size: int, channels: int, *, many: int = 0
) -> tuple[NDArray[np.uint8], Problems]:
    """The rows that were read, (N, channels, size, size), and why the others were not.

    From `many` files on processes read them; 0 stands for MANY.
    """
    shape = (len(entries), channels, size, size)
    pixels = np.frombuffer(mmap.mmap(-1, max(1, int(np.prod(shape)))), np.uint8)
    out = pixels[: int(np.prod(shape))].reshape(shape)
    # An archive is read from the front by one; files, and what opens itself, by many at once.
    separate = place.is_dir() or all(entry.make for entry in entries)
    if workers.forkable() and separate and len(entries) >= (many or MANY):
        problems = _by_processes(place, entries, out)
    else:
        problems = _by_threads(place, entries, out)
    kept = [row for row in range(len(entries)) if row not in problems]
    if problems:
        for new, old in enumerate(kept):  # in place: indexing would double the memory
            out[new] = out[old]
    return out[: len(kept)], problems


def _by_threads(place: Path, entries: Sequence[Member], out: NDArray[np.uint8]) -> Problems:
    """As files come out of their place, in its order: an archive is read once, from the front."""
    problems = dict.fromkeys(range(len(entries)), "not found when it was read")

    def jobs() -> Iterator[Job]:
        yield from ((row, e.make) for row, e in enumerate(entries) if e.make)
        rows = {e.path: row for row, e in enumerate(entries) if not e.make}
        for path, data in read_files(place, rows) if rows else ():
            if isinstance(data, bytes):
                yield rows[path], partial(open_image, data, out.shape[-1])
            else:
                problems[rows[path]] = f"{type(data).__name__}: {data}"

    def read(job: Job) -> None:
        row, make = job
        problem = _read(row, make, out)
        if problem is None:
            problems.pop(row, None)
        else:
            problems[row] = problem

    waiting = jobs()
    with _strict(), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        while batch := list(islice(waiting, CHUNK)):  # so many encoded files are in memory
            list(pool.map(read, batch))
    return problems


def _by_processes(place: Path, entries: Sequence[Member], out: NDArray[np.uint8]) -> Problems:
    """Each process takes files by their path and writes its rows where all can see them."""
    global _work
    _work = (place, entries, out)  # what a forked process finds without being sent it
    problems: Problems = {}
    try:
        with workers.pool() as pool:
            for found in pool.imap_unordered(_read_rows, _pieces(len(entries))):
                problems |= found
    finally:
        _work = None
    return problems


_work: tuple[Path, Sequence[Member], NDArray[np.uint8]] | None = None


def _pieces(count: int) -> list[range]:
    """Rows that a process takes at once: several pieces each, so that all end together."""
    size = max(1, min(CHUNK, count // (4 * workers.count())))
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


def _read_rows(rows: range) -> Problems:
    if _work is None:
        raise RuntimeError("A process was started without its work.")
    place, entries, out = _work
    problems = {}
    with _strict():
        for row in rows:
            problem = _read(row, partial(_open, place, entries[row], out.shape[-1]), out)
            if problem is not None:
                problems[row] = problem
    return problems


def _open(place: Path, entry: Member, size: int) -> Image.Image:
    if entry.make is not None:
        return entry.make()
    return open_image((place / entry.path).read_bytes(), size)


def _read(row: int, make: Callable[[], Image.Image], out: NDArray[np.uint8]) -> str | None:
    """Fills the row, or says why not: decoders raise anything on a broken file."""
    try:
        out[row] = square_bytes(make(), out.shape[-1], out.shape[1])
    except UnidentifiedImageError:  # names a buffer, not the file
        return "not an image"
    except FileNotFoundError:
        return "not found when it was read"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _strict() -> warnings.catch_warnings[None]:
    """Pictures that are suspiciously large are refused."""
    return warnings.catch_warnings(action="error", category=Image.DecompressionBombWarning)
