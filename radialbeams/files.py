"""Files: atomic writing, claims by one process, hashes, and natural sorting of names."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a file atomically: `write` fills a hidden file, which is then moved to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A random name, so that nobody can place a link there; links are not followed anyway.
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    partial.touch(exist_ok=False)
    try:
        mode = partial.stat().st_mode  # by the umask; some writers restrict it further
        write(partial)
        partial.chmod(mode)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def claimed(place: Path) -> Iterator[bool]:
    """Yields True for one process at a time; the system releases the claim if the process dies.

    The file is removed at the end, when the result exists: a process that has locked the removed
    file must check for the result first. Without `fcntl` (Windows), every process gets its claim.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("w") as file:
        if not _lock(file.fileno()):
            yield False
            return
        yield True
        place.unlink(missing_ok=True)


def _lock(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def sha256(content: Path | bytes) -> str:
    """The hexadecimal SHA-256 of bytes, or of a file, which is read in chunks."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with content.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def bucket(key: str, buckets: int) -> int:
    """A number from 0 to `buckets` − 1 for a key, the same on every machine and in every subset."""
    # surrogateescape does not change valid text; it allows file names that are not UTF-8.
    return int(sha256(key.encode(errors="surrogateescape")), 16) % buckets


def natural_order(path: str) -> tuple[str, str]:
    """A sort key that puts `obj2` before `obj10`."""
    return re.sub("[0-9]+", lambda digits: digits[0].zfill(12), path), path


def natural_order_in_any_case(name: str) -> tuple[list[str | int], str]:
    """A sort key that puts 2.jpg before 10.jpg and ignores case, as file managers do."""
    parts = re.split(r"(\d+)", name.casefold())
    return [int(part) if number % 2 else part for number, part in enumerate(parts)], name
