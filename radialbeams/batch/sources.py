"""Reads input files in a way that detects later changes to them."""

from __future__ import annotations

import os
import stat

from radialbeams import images
from radialbeams.images import ImageError
from radialbeams.limits import Limits

CHANGED = "It changed during this run, so it was left as it is. Run the command again."


def stamp_of(info: os.stat_result) -> str:
    """Size, modification time, inode and device, which change if a file is edited or replaced."""
    return f"{info.st_size} {info.st_mtime_ns} {info.st_ino} {info.st_dev}"


def stamp(path: str) -> str | None:
    """The stamp of a file, or None if there is none; reading it later raises the error."""
    try:
        return stamp_of(os.stat(path))
    except OSError:
        return None


def read_unchanged(path: str, before: str | None, limits: Limits) -> bytes:
    """The content of a file; raises ImageError if its stamp is not `before` until it is read."""
    with open(path, "rb") as file:
        opened = stamp_of(os.fstat(file.fileno()))
        content = images.content_of(file, limits)
        if not before == opened == stamp_of(os.fstat(file.fileno())):
            raise ImageError(CHANGED)
    return content


def refusal(path: str) -> str | None:
    """Why a path must not be opened, or None. Reading a pipe or a device may never end."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return None  # opening the file raises the error
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    return "It is a pipe or a device, not a file. Use - to read from standard input."
