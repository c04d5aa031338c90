"""Inputs, read so that a later change is noticed."""

from __future__ import annotations

import os

from radialbeams import images
from radialbeams.images import ImageError
from radialbeams.limits import Limits

CHANGED = "It changed while this run was at work, and was left as it is. Run the command again."


def stamp_of(info: os.stat_result) -> str:
    """What changes whenever a file is edited or replaced: size, time, inode, device."""
    return f"{info.st_size} {info.st_mtime_ns} {info.st_ino} {info.st_dev}"


def stamp(path: str) -> str | None:
    """None where there is no file; whoever reads it gets the reason."""
    try:
        return stamp_of(os.stat(path))
    except OSError:
        return None


def read_unchanged(path: str, before: str | None, limits: Limits) -> bytes:
    """The content of a file that has had the same stamp from `before` until now."""
    with open(path, "rb") as file:
        opened = stamp_of(os.fstat(file.fileno()))
        content = images.content_of(file, limits)
        if not before == opened == stamp_of(os.fstat(file.fileno())):
            raise ImageError(CHANGED)
    return content
