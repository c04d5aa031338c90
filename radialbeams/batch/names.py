"""Which names a file system can hold."""

from __future__ import annotations

import os
from functools import lru_cache

LONGEST_NAME, LONGEST_PATH = 255, 4096  # bytes, where the system does not say


def problem_with(out: str) -> str | None:
    """Why no file can have this name, known before any work is done for it."""
    folder, name = os.path.split(out)
    longest = _longest_name(folder)
    length = len(os.fsencode(name))
    if length > longest:
        return (
            f"The name of its output would have {length} bytes, and {longest} are possible. "
            "Give it a shorter name."
        )
    if len(os.fsencode(os.path.abspath(out))) >= LONGEST_PATH:
        return f"The path of its output would be longer than {LONGEST_PATH - 1} bytes."
    return None


@lru_cache(maxsize=1)  # outputs come folder by folder
def _longest_name(folder: str) -> int:
    """In the nearest folder that exists already."""
    folder = os.path.abspath(folder)
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    try:
        return os.pathconf(folder, "PC_NAME_MAX")
    except (AttributeError, OSError, ValueError):
        return LONGEST_NAME
