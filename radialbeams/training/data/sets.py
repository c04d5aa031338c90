"""Loads image sets and their splits from folders or archives.

Images come in the natural order (`obj2` before `obj10`) of their paths inside the data set, so a
folder, an archive and a subset agree. The split depends on an image's key only, not on its path.
"""

from __future__ import annotations

import dataclasses
import mmap
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import torch

from radialbeams.files import bucket
from radialbeams.training.data.archives import (
    file_names,
    folder_name,
    is_place,
    without_top,
)
from radialbeams.training.data.decoding import decode
from radialbeams.training.data.members import Member
from radialbeams.training.data.sources import SOURCES, DataSource, read_folder

SPLITS = ("train", "test", "all")
SPLITS_BY = ("default", "object")
FOLDER_SIZE = 256


class DataNotFound(ValueError):
    """The data was not found; the message names its source and the expected layout."""


@dataclass(frozen=True)
class ImageSet:
    """Upright images of one size as bytes, with the key and the group of each."""

    name: str
    images: torch.Tensor  # uint8 (N, C, W, W)
    keys: tuple[str, ...]  # decide the split: the file's stem, or the person for LFW
    groups: tuple[str, ...]  # object ("obj1"), person or class name; "" if there is none
    angles_degrees: tuple[float, ...] | None = None  # of pre-rotated images only
    # The memory-mapped file behind `images`, if there is one.
    file: np.memmap | None = dataclasses.field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.keys)

    def upright(self) -> ImageSet:
        """Itself; raises ValueError if the images are pre-rotated."""
        if self.angles_degrees is not None:
            raise ValueError(
                f"{self.name} contains pre-rotated images; expected upright ones, from which views "
                "are rendered. Use its upright images (for SI-SCORE: the samples)."
            )
        return self

    def release(self) -> None:
        """Releases the pages that were read from a memory-mapped file.

        The system would release them when memory runs short; until then, they count as memory of
        this process.
        """
        mapping = None if self.file is None else getattr(self.file, "_mmap", None)
        if mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapping.madvise(mmap.MADV_DONTNEED)

    def select(self, indices: Sequence[int]) -> ImageSet:
        """A copy with the images at these indices, in this order."""
        rows = [int(i) for i in indices]
        angles = self.angles_degrees
        return ImageSet(
            self.name,
            self.images[rows],
            tuple(self.keys[i] for i in rows),
            tuple(self.groups[i] for i in rows),
            None if angles is None else tuple(angles[i] for i in rows),
        )


def in_test(key: str) -> bool:
    """True for about one key in five, the same on every machine and in every subset."""
    return bucket(key, 5) == 0


def load(
    data: str | Path,
    *,
    root: Path | None = None,
    split: str = "all",
    split_by: str = "default",
    size: int | None = None,
    channels: int = 3,
    limit: int | None = None,
    on_skip: Callable[[str, str], None] | None = None,
) -> ImageSet:
    """Loads a data set: a name in SOURCES, `scenes`, or a path; a `Path` is always a path.

    A path to the folder or archive of a known set, such as `…/lfw` or `…/coil-100.zip`, loads that
    set, so that its own keys decide the split and no person is in both parts.

    Each image is brought into its EXIF orientation, cropped to its centred square, composed on
    black where it is transparent, and resized (Lanczos) unless its side is `size`. `limit` takes
    evenly spaced images of the split. Only the files of the split are decoded.
    """
    for field, value, allowed in (
        ("split", split, SPLITS),
        ("split_by", split_by, SPLITS_BY),
        ("channels", channels, (1, 3)),
    ):
        if value not in allowed:
            values = ", ".join(map(repr, allowed))
            raise ValueError(
                f"Expected {field} to be one of {values}; got {value!r}. Choose one of them."
            )
    for field, number in (("size", size), ("limit", limit)):
        if number is not None and number < 1:
            raise ValueError(f"Expected {field} of at least 1; got {number}. Use more, or None.")

    located = _scenes(size) if data == "scenes" else _locate(data, root)
    chosen = _of_split(located, split, split_by)
    if limit is not None and limit < len(chosen):
        chosen = [chosen[i * len(chosen) // limit] for i in range(limit)]

    images, problems = decode(located.place, chosen, size or located.size, channels)
    _report(located.place, [(chosen[row].path, problems[row]) for row in sorted(problems)], on_skip)
    readable = [e for row, e in enumerate(chosen) if row not in problems]
    if not readable:
        raise ValueError(
            f"Expected images in {located.place}; got {len(chosen)} files, none readable "
            f"(first: {problems[0]}). Check that the files are intact."
        )
    angles = tuple(e.angle_degrees for e in readable if e.angle_degrees is not None)
    keys, groups = tuple(e.key for e in readable), tuple(e.group for e in readable)
    return ImageSet(located.name, torch.from_numpy(images), keys, groups, angles or None)


# Where the data is.


def place_of(name: str, root: Path | None = None) -> Path:
    """The folder or archive that contains a named data set."""
    return _find(name, root).place


@dataclass(frozen=True)
class _LocatedSet:
    name: str  # of the data set, or the given path
    place: Path
    members: list[Member]
    size: int


def _locate(data: str | Path, root: Path | None) -> _LocatedSet:
    if isinstance(data, str) and data in SOURCES:
        return _find(data, root)
    place = Path(data).expanduser()
    if not place.exists():
        raise DataNotFound(
            f"Expected one of {', '.join(SOURCES)}, or a path; got {str(data)!r}, which is "
            "neither. Check the spelling, or give the path of a folder or archive of images."
        )
    for name, source in SOURCES.items():
        named = any(fnmatchcase(folder_name(place), glob) for glob in source.places)
        if named and (members := _read(source, place, nested=True)):
            return _LocatedSet(name, place, members, source.size)
    if members := read_folder(place, file_names(place)):
        return _LocatedSet(str(data), place, members, FOLDER_SIZE)
    raise DataNotFound(
        f"Expected png, jpg, webp, bmp or tif images; got {place}, which contains none. "
        "Give a folder that contains some."
    )


def _scenes(size: int | None) -> _LocatedSet:
    """Analytic scenes, which need no files and are rendered at the requested size."""
    from radialbeams.training.data import scenes  # late: it imports this module

    members = scenes.scene_members(range(scenes.COUNT), size or scenes.SIZE)
    return _LocatedSet("scenes", Path("scenes"), members, scenes.SIZE)


def _find(name: str, root: Path | None) -> _LocatedSet:
    source = SOURCES[name]
    folder = root or os.environ.get("RADIALBEAMS_DATA")
    top = Path(folder).expanduser() if folder else None
    for place in _places(source, top):
        # Not nested in the root itself: its subfolders may contain other data.
        if members := _read(source, place, nested=place != top or place.is_file()):
            return _LocatedSet(name, place, members, source.size)
    searched = [f"{top / glob}" for glob in source.places] + [f"{top}"] if top else []
    where = ", ".join([*searched, *source.installed])
    result = f"found nothing like it in {where}" if where else "no folder was given"
    raise DataNotFound(
        f"Expected {name} as {source.layout}; {result}. Get it from "
        f"{source.official} ({source.licence}) and name the folder that contains it with "
        "--data DIR or RADIALBEAMS_DATA."
    )


def _places(source: DataSource, top: Path | None) -> Iterator[Path]:
    """Folders before archives, and the complete `lfw.zip` before the subset `lfw-4000.zip`."""
    if top is not None and top.exists():
        candidates = {p for glob in source.places for p in top.glob(glob) if is_place(p)}
        yield from sorted(candidates, key=lambda p: (not p.is_dir(), len(p.name), p.name))
        yield top
    yield from (Path(p) for p in source.installed if Path(p).is_dir())


def _read(source: DataSource, place: Path, *, nested: bool) -> list[Member]:
    """The members; `nested` also looks inside a top folder, which archives often have."""
    names = file_names(place)
    return source.read(place, names) or (source.read(place, without_top(names)) if nested else [])


def _of_split(located: _LocatedSet, split: str, split_by: str) -> list[Member]:
    with_objects = [name for name, source in SOURCES.items() if source.objects_known]
    if split_by == "object" and located.name not in with_objects:
        raise ValueError(
            f"Expected one of {', '.join(with_objects)} for split_by='object'; got "
            f"{located.name}, whose objects are not known. Use split_by='default'."
        )

    def held_out(entry: Member) -> bool:
        if split_by == "object" and entry.object_key:
            return in_test(entry.object_key)
        if split_by == "object":
            return int(entry.group.removeprefix("obj")) > 80
        return in_test(entry.key) if entry.held_out is None else entry.held_out

    chosen = [e for e in located.members if split == "all" or held_out(e) == (split == "test")]
    if not chosen:
        raise ValueError(
            f"Expected images in the {split} split of {located.name}; got {len(located.members)} "
            "images, none of them in it. Use split='all', or add images: about one key in five "
            "belongs to the test split."
        )
    return chosen


def _report(
    place: Path, skipped: list[tuple[str, str]], on_skip: Callable[[str, str], None] | None
) -> None:
    if on_skip is not None:
        for path, reason in skipped:
            on_skip(path, reason)
    elif skipped:
        path, reason = skipped[0]
        text = f"Skipped {len(skipped)} unreadable files of {place}; the first is {path}: {reason}"
        warnings.warn(text, stacklevel=3)
