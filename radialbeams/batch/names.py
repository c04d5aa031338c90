"""Checks whether the file system can store a file under a given name."""

from __future__ import annotations

import os
from functools import lru_cache

LONGEST_NAME, LONGEST_PATH = 255, 4096  # bytes; the first only if the system gives no limit


def problem_with(out: str) -> str | None:
    """Why no file can have this path, or None; checked before any work is done for it."""
    folder, name = os.path.split(out)
    longest = _longest_name(folder)
    length = len(os.fsencode(name))
    if length > longest:
        return (
            f"The name of its output would have {length} bytes, but at most {longest} are allowed. "
            "Give it a shorter name."
        )
    if len(os.fsencode(os.path.abspath(out))) >= LONGEST_PATH:
        return f"The path of its output would be longer than {LONGEST_PATH - 1} bytes."
    return None


@lru_cache(maxsize=1)  # outputs come folder by folder
def _longest_name(folder: str) -> int:
    """The limit of the folder, or of the nearest parent that exists."""
    folder = os.path.abspath(folder)
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    try:
        return os.pathconf(folder, "PC_NAME_MAX")
    except (AttributeError, OSError, ValueError):
        return LONGEST_NAME
