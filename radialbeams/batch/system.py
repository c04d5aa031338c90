"""What differs between operating systems: locks, owners, and writes that survive a power cut."""

from __future__ import annotations

import importlib
import os
import stat
import tempfile
from contextlib import suppress
from typing import Any


def _module(name: str) -> Any:
    """None where the system has no such module."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


fcntl, msvcrt = _module("fcntl"), _module("msvcrt")
LOCKED_BYTE = 1 << 40  # Windows locks ranges of bytes; this one lies beyond all content
# Windows neither has nor needs most of these.
NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not wait for its other end
BINARY: int = getattr(os, "O_BINARY", 0)
REPLACES_OPEN_FILES = os.name == "posix"


class Untrusted(Exception):
    """A file that another user made, or may change."""


# --- locks ---


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """False where another process holds the lock. A file system without locks refuses nobody."""
    if fcntl is not None:
        return _try_flock(descriptor, shared)
    if msvcrt is not None:
        return _try_locking(descriptor)
    return True


def _try_flock(descriptor: int, shared: bool) -> bool:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _try_locking(descriptor: int) -> bool:
    """Windows has exclusive locks only, and reports one that is held as a lack of permission."""
    os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except PermissionError:
        return False
    except OSError:
        return True
    return True


# --- files ---


def open_new(path: str, *, private: bool = False) -> int:
    """A descriptor of a file that did not exist before; never follows a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | BINARY
    return os.open(path, flags, 0o600 if private else 0o666)


def open_own(path: str, *, create: bool = False) -> int:
    """A descriptor of a file of this user's, which has no other name and is no link.

    Raises Untrusted for any other. `create` also opens it for appending.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT if create else os.O_RDONLY
    if os.path.islink(path):
        raise Untrusted(path)
    descriptor = os.open(path, flags | NO_FOLLOW | NO_WAIT | BINARY, 0o600)
    info = os.fstat(descriptor)
    if stat.S_ISREG(info.st_mode) and info.st_nlink <= 1 and is_own(info, os.path.dirname(path)):
        return descriptor
    os.close(descriptor)
    raise Untrusted(path)


def is_own(info: os.stat_result, folder: str) -> bool:
    """Whether this user owns a file, or at least whoever owns what this user creates in `folder`.

    Some network file systems give all that a user creates to another one.
    """
    if not hasattr(os, "geteuid") or info.st_uid == os.geteuid():
        return True
    with suppress(OSError), tempfile.TemporaryFile(dir=folder) as probe:
        return os.fstat(probe.fileno()).st_uid == info.st_uid
    return False


def make_folders(folder: str) -> None:
    """Like `os.makedirs`, for any depth: it does not call itself."""
    missing = []
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        parent = os.path.dirname(folder)
        folder = "" if parent == folder else parent
    for name in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(name)


# --- power cuts ---


def sync(descriptor: int) -> None:
    """Waits until a file's content is on the disk, not only in the disk's own memory."""
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS, where fsync alone promises less
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def sync_folder(folder: str) -> None:
    """So that the names in it survive a power cut too, where the system can do that."""
    with suppress(OSError):
        descriptor = os.open(folder or ".", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
