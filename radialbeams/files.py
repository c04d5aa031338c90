"""Files and their names: written whole, claimed by one process, hashed, sorted as people count."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Lets `write` fill a hidden file beside `path`, then moves it there in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name that nobody can guess and plant a link at; links are not followed either way.
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    partial.touch(exist_ok=False)
    try:
        mode = partial.stat().st_mode  # what the umask allows; some writers leave less
        write(partial)
        partial.chmod(mode)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def claimed(place: Path) -> Iterator[bool]:
    """True for one process at a time; the system takes the claim back when the process dies.

    The file is removed at the end, when the result is there: whoever locks the removed file must
    look for the result first. Without `fcntl` (Windows) every process gets its claim.
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
    """The hexadecimal SHA-256 of a file, which is read in pieces, or of bytes."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with content.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def bucket(key: str, buckets: int) -> int:
    """A number from 0 to `buckets` − 1 that a key has on every machine and in every subset."""
    # surrogateescape changes no valid text; it only lets file names that are no UTF-8 have one.
    return int(sha256(key.encode(errors="surrogateescape")), 16) % buckets


def natural_order(path: str) -> tuple[str, str]:
    """A sorting key that counts: `obj2` comes before `obj10`."""
    return re.sub("[0-9]+", lambda digits: digits[0].zfill(12), path), path
