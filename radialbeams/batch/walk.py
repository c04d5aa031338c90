"""Finds the images below a folder, at any depth. An unreadable entry does not stop the walk."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from radialbeams import images
from radialbeams.files import natural_order_in_any_case

# The output formats, with the file extensions of each.
FORMATS = {
    "jpeg": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "png": (".png",),
    "webp": (".webp",),
    "tiff": (".tif", ".tiff"),
    "bmp": (".bmp",),
    "gif": (".gif",),
    "avif": (".avif",),
    "jpeg2000": (".jp2",),
    "ppm": (".ppm", ".pgm", ".pnm"),
}
# Files in a folder count as images by these extensions; a file given by name is always read.
SUFFIXES = {suffix for suffixes in FORMATS.values() for suffix in suffixes}
RUN_FOLDER = ".radialbeams-run"
natural = natural_order_in_any_case  # the order of files in a folder
# Reasons for leaving out an entry; the others are file extensions.
EXCLUDED = "excluded by patterns"
HIDDEN, HIDDEN_FOLDERS = "hidden", "hidden folders"
WITHOUT_ENDING = "without an ending"
PIPES, FOLDER_LINKS, BROKEN_LINKS = "pipes and devices", "links to folders", "broken links"


@dataclass(frozen=True)
class WalkedFile:
    """A file to read, or a folder entry that cannot be read, with the error."""

    path: str
    error: str | None = None


@dataclass(frozen=True)
class SkippedFiles:
    """What a walk skipped."""

    left_out: Counter[str] = field(default_factory=Counter)  # files, counted by kind
    runs: list[str] = field(default_factory=list)  # folders that contain the journal of a run


@dataclass(frozen=True)
class FileFilter:
    """Which files of a folder are read, by patterns such as *.jpg or holiday/*."""

    recursive: bool = True
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def takes(self, below: str) -> bool:
        """Whether a file is read; `below` is its path relative to the given folder."""
        names = (below, os.path.basename(below))
        if self.include and not _matches(names, self.include):
            return False
        return not _matches(names, self.exclude)


def _matches(names: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for name in names for pattern in patterns)


EVERYTHING = FileFilter()


def walk(
    folder: str, skip: Path | None, skipped: SkippedFiles, wanted: FileFilter = EVERYTHING
) -> Iterator[WalkedFile]:
    """The images below a folder in natural order.

    Skips hidden files, linked folders and the output folder `skip`. Not recursive, so folders may
    be nested to any depth.
    """
    for file in _all_below(folder, skip, skipped, wanted.recursive):
        if file.error is not None or wanted.takes(os.path.relpath(file.path, folder)):
            yield file
        else:
            skipped.left_out[EXCLUDED] += 1


def _all_below(
    folder: str, skip: Path | None, skipped: SkippedFiles, recursive: bool
) -> Iterator[WalkedFile]:
    output_folder = None if skip is None else _identity(skip)
    stack = [_entries(folder, skipped)]
    while stack:
        entry = next(stack[-1], None)
        if entry is None:
            stack.pop()
        elif isinstance(entry, WalkedFile):
            yield entry
        elif recursive and (output_folder is None or _identity(entry) != output_folder):
            stack.append(_entries(entry, skipped))


def _entries(folder: str, skipped: SkippedFiles) -> Iterator[WalkedFile | str]:
    """The images of one folder, and its subfolders as plain paths."""
    kinds: dict[str, str | OSError] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name == RUN_FOLDER:
                    skipped.runs.append(folder)
                if entry.name.startswith("."):
                    skipped.left_out.update(_hidden(entry))
                else:
                    kinds[entry.name] = _kind(entry)
    except OSError as error:
        yield WalkedFile(
            folder, f"This folder cannot be read ({reason(error)}), nor anything in it."
        )
    for name in sorted(kinds, key=natural):
        path, kind = os.path.join(folder, name), kinds[name]
        if kind == "image":
            yield WalkedFile(path)
        elif kind == "folder":
            yield path
        elif isinstance(kind, OSError):
            yield WalkedFile(path, f"It cannot be read ({reason(kind)}).")
        else:
            skipped.left_out[kind] += 1


def _hidden(entry: os.DirEntry[str]) -> Iterator[str]:
    """The kind of a hidden entry; the journals of runs do not count."""
    if entry.name != RUN_FOLDER:
        yield HIDDEN_FOLDERS if entry.is_dir(follow_symlinks=False) else HIDDEN


def _kind(entry: os.DirEntry[str]) -> str | OSError:
    """ "image", "folder", a name for any other kind of entry, or the error of the system."""
    try:
        if entry.is_dir(follow_symlinks=False):
            return "folder"
        if entry.is_file():
            suffix = os.path.splitext(entry.name)[1].lower()
            return "image" if is_image(suffix) else suffix or WITHOUT_ENDING
        if not entry.is_symlink():
            return PIPES
        return FOLDER_LINKS if entry.is_dir() else BROKEN_LINKS
    except OSError as error:
        return error


def is_image(suffix: str) -> bool:
    """Whether files in a folder with this extension, in lower case, are read."""
    return suffix in SUFFIXES or suffix in images.RAW_SUFFIXES or suffix in _with_plugins()


@cache
def _with_plugins() -> set[str]:
    return images.suffixes()


def _identity(folder: str | Path) -> tuple[int, int] | None:
    try:
        info = os.stat(folder)
    except OSError:
        return None
    return info.st_dev, info.st_ino


def reason(error: OSError) -> str:
    """The system's error message, without the path."""
    return error.strerror or type(error).__name__
