"""Which files a run takes, in which order, and where each goes: fixed before any is touched."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

# Small enough to share out a few large photos, large enough that a journal line costs nothing.
BATCH = 16
# The formats that can be asked for, with the endings that files of each may have.
FORMATS = {
    "jpeg": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "png": (".png",),
    "webp": (".webp",),
    "tiff": (".tif", ".tiff"),
    "bmp": (".bmp",),
}
# What counts as an image inside a folder; a file that is named itself is always tried.
SUFFIXES = {suffix for suffixes in FORMATS.values() for suffix in suffixes} | {
    ".gif", ".ppm", ".pgm", ".pnm", ".jp2", ".avif",
}  # fmt: skip
UPRIGHT = "-upright"


class PlanError(ValueError):
    """The command asks for outputs where they cannot go."""


@dataclass(frozen=True)
class Item:
    """One file to read, and where its output goes (None: nothing is written)."""

    path: str
    out: str | None = None


@dataclass(frozen=True)
class Plan:
    """The files and folders that were named, and where the outputs go.

    With neither `folder`, `file` nor `in_place` an output goes beside its input; without `writes`
    nothing goes anywhere.
    """

    sources: tuple[str, ...]
    writes: bool = True
    folder: Path | None = None
    file: Path | None = None
    in_place: bool = False
    format: str | None = None

    def __post_init__(self) -> None:
        if self.in_place and self.format:
            raise PlanError("A file turned in place keeps its format; leave out one of the two.")
        if self.file is not None and len(self.sources) > 1:
            raise PlanError(f"{self.file} is one file, but several inputs were named.")
        if self.folder is not None and self.folder.exists() and not self.folder.is_dir():
            raise PlanError(f"{self.folder} is a file; name a folder for the outputs.")
        if self.file is not None and os.path.realpath(self.file) in map(
            os.path.realpath, self.sources
        ):
            raise PlanError(f"{self.file} is the input itself. Say --in-place to replace it.")
        for source in self.sources if self.folder is not None else ():
            holder = source if os.path.isdir(source) else os.path.dirname(source)
            if os.path.realpath(holder) == os.path.realpath(str(self.folder)):
                raise PlanError(
                    f"{self.folder} holds the inputs themselves. Choose another folder, or say "
                    "--in-place to replace them."
                )

    @property
    def home(self) -> Path:
        """The folder that keeps the journal: the outputs' own, else the first of the inputs'."""
        if self.folder is not None:
            return self.folder
        if self.file is not None:
            return self.file.parent
        folders = (path if path.is_dir() else path.parent for path in map(Path, self.sources))
        return next(filter(Path.is_dir, folders), Path())

    def items(self) -> Iterator[Item]:
        """In plan order; no two have the same output."""
        taken: set[str] = set()
        for path, below in self._files():
            if not self.writes:
                yield Item(path)
                continue
            if not self.in_place:
                yield Item(path, _free(self._wanted(path, below), taken))
                continue
            place = os.path.realpath(path)
            if place not in taken:  # else it was named twice, and would be turned twice
                taken.add(place)
                # What a link points to is replaced, so that the link stays one.
                yield Item(path, place if os.path.islink(path) else path)

    def _files(self) -> Iterator[tuple[str, str]]:
        """Each file, and its place below the folder that was named."""
        beside = self.writes and not (self.folder or self.file or self.in_place)
        skip = None if self.folder is None else os.path.realpath(self.folder)
        for source in self.sources:
            if not os.path.isdir(source):
                yield source, os.path.basename(source)
                continue
            for path in _walk(source, skip, without_outputs=beside):
                yield path, os.path.relpath(path, source)

    def _wanted(self, path: str, below: str) -> str:
        if self.file is not None:
            return str(self.file)
        if self.folder is not None:
            stem, suffix = os.path.splitext(os.path.join(self.folder, below))
            return stem + self._suffix(suffix)
        stem, suffix = os.path.splitext(path)
        return stem + UPRIGHT + self._suffix(suffix)

    def _suffix(self, suffix: str) -> str:
        """The input's own, unless it does not fit the format that was asked for."""
        if self.format is None or suffix.lower() in FORMATS[self.format]:
            return suffix
        return FORMATS[self.format][0]


def plan_for(
    sources: Sequence[str], out: str | None, *, in_place: bool = False, format: str | None = None
) -> Plan:
    """`out` is a file if one file is named and `out` has an image's ending, else a folder."""
    if out is None:
        return Plan(tuple(sources), in_place=in_place, format=format)
    if in_place:
        raise PlanError("A file goes to an output or stays in its place; leave out one of the two.")
    one_file = len(sources) == 1 and not os.path.isdir(sources[0])
    suffix = os.path.splitext(out)[1].lower()
    if not one_file or os.path.isdir(out) or suffix not in SUFFIXES:
        return Plan(tuple(sources), folder=Path(out), format=format)
    if format_of(out) is None or format not in (None, format_of(out)):
        raise PlanError(
            f"{out} does not end as a file of the format to be written does. "
            f"Formats are {', '.join(FORMATS)}."
        )
    return Plan(tuple(sources), file=Path(out), format=format_of(out))


def batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Always cut at the same places, so that no answer depends on who works, or since when."""
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch


def format_of(path: str | Path) -> str | None:
    suffix = os.path.splitext(path)[1].lower()
    return next((name for name, suffixes in FORMATS.items() if suffix in suffixes), None)


def natural(name: str) -> tuple[list[str | int], str]:
    """A sorting key: 2.jpg before 10.jpg, whatever the case."""
    parts = re.split(r"(\d+)", name.casefold())
    return [int(part) if number % 2 else part for number, part in enumerate(parts)], name


def _walk(folder: str, skip: str | None, *, without_outputs: bool) -> Iterator[str]:
    """The images below a folder; nothing hidden, no linked folders, not the outputs' own."""
    try:
        with os.scandir(folder) as found:
            kinds = {
                entry.name: (entry.is_dir(follow_symlinks=False), entry.is_file())
                for entry in found
                if not entry.name.startswith(".")
            }
    except OSError:
        yield folder  # taken for a file, reading it fails with the reason, and the rest goes on
        return
    stems = {os.path.splitext(name)[0] for name in kinds}
    for name in sorted(kinds, key=natural):
        path, (is_folder, is_file) = os.path.join(folder, name), kinds[name]
        if is_folder and os.path.realpath(path) != skip:
            yield from _walk(path, skip, without_outputs=without_outputs)
        stem, suffix = os.path.splitext(name)
        if is_file and suffix.lower() in SUFFIXES:
            if without_outputs and _original(stem) in stems:
                continue
            yield path


def _original(stem: str) -> str | None:
    """photo, for photo-upright and photo-upright-2."""
    found = re.fullmatch(rf"(.*){UPRIGHT}(-\d+)?", stem)
    return found[1] if found else None


def _free(wanted: str, taken: set[str]) -> str:
    """With a number if need be. Some file systems take A.jpg and a.jpg for one file."""
    stem, suffix = os.path.splitext(wanted)
    free, number = wanted, 2
    while free.casefold() in taken:
        free, number = f"{stem}-{number}{suffix}", number + 1
    taken.add(free.casefold())
    return free
