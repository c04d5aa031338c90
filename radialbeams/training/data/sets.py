"""Image sets and their split, read from folders or archives as they are.

The order of the images is the natural order (`obj2` before `obj10`) of their paths inside the data
set, so a folder, an archive and a subset agree. A path never decides the split, only its key does.
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
    """The data is not where it was looked for; the text says where to get it and how to lay it."""


@dataclass(frozen=True)
class ImageSet:
    """Upright images of one size as bytes, and what a split or a report needs to know of each."""

    name: str
    images: torch.Tensor  # uint8 (N, C, W, W)
    keys: tuple[str, ...]  # what decides the split: file stem, or person for LFW
    groups: tuple[str, ...]  # object ("obj1"), person, class name; "" where there is none
    angles_degrees: tuple[float, ...] | None = None  # only where the data comes already turned
    # The file behind `images` where they are not in memory but mapped into it.
    file: np.memmap | None = dataclasses.field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.keys)

    def upright(self) -> ImageSet:
        """Itself, or an error where the images come already turned."""
        if self.angles_degrees is not None:
            raise ValueError(
                f"{self.name} holds images that are already turned, and views are rendered from "
                "upright ones. Use the set's upright images (for SI-SCORE: its samples)."
            )
        return self

    def release(self) -> None:
        """Gives back the memory of what was read from a mapped file.

        The system would do so when it runs short; until then everything that was ever read counts
        as memory of this process.
        """
        held = None if self.file is None else getattr(self.file, "_mmap", None)
        if held is not None and hasattr(mmap, "MADV_DONTNEED"):
            held.madvise(mmap.MADV_DONTNEED)

    def select(self, indices: Sequence[int]) -> ImageSet:
        """The images are copied, in the order asked for."""
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
    """True for a fifth of all keys, and for the same ones on every machine and in every subset."""
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
    """`data` names a set in SOURCES, or is `scenes`, else a path; a `Path` is always a path.

    A path to the folder or archive of a known set, such as `…/lfw` or `…/coil-100.zip`, is that
    set, so that its own keys decide the split and no person is in both halves.

    Each image is turned as its EXIF says, cut to its centred square, laid on black where it is
    transparent, and resized (Lanczos) only if its side is not `size`. `limit` takes evenly spaced
    images of the split. Only the files of the split are decoded.
    """
    for field, value, allowed in (
        ("split", split, SPLITS),
        ("split_by", split_by, SPLITS_BY),
        ("channels", channels, (1, 3)),
    ):
        if value not in allowed:
            values = ", ".join(map(repr, allowed))
            raise ValueError(
                f"expected {field} to be one of {values}; came {value!r}; choose one of them"
            )
    for field, number in (("size", size), ("limit", limit)):
        if number is not None and number < 1:
            raise ValueError(f"expected {field} of at least 1; came {number}; give more, or None")

    found = _scenes(size) if data == "scenes" else _locate(data, root)
    chosen = _of_split(found, split, split_by)
    if limit is not None and limit < len(chosen):
        chosen = [chosen[i * len(chosen) // limit] for i in range(limit)]

    images, problems = decode(found.place, chosen, size or found.size, channels)
    _report(found.place, [(chosen[row].path, problems[row]) for row in sorted(problems)], on_skip)
    kept = [e for row, e in enumerate(chosen) if row not in problems]
    if not kept:
        raise ValueError(
            f"expected images in {found.place}; came {len(chosen)} files, none readable "
            f"(first: {problems[0]}); check that the files are whole"
        )
    angles = tuple(e.angle_degrees for e in kept if e.angle_degrees is not None)
    keys, groups = tuple(e.key for e in kept), tuple(e.group for e in kept)
    return ImageSet(found.name, torch.from_numpy(images), keys, groups, angles or None)


# Where the data is.


def place_of(name: str, root: Path | None = None) -> Path:
    """The folder or archive in which a named set was found."""
    return _find(name, root).place


@dataclass(frozen=True)
class _Found:
    name: str  # of the set, or the path as it was given
    place: Path
    entries: list[Member]
    size: int


def _locate(data: str | Path, root: Path | None) -> _Found:
    if isinstance(data, str) and data in SOURCES:
        return _find(data, root)
    place = Path(data).expanduser()
    if not place.exists():
        raise DataNotFound(
            f"expected one of {', '.join(SOURCES)}, or a path; came {str(data)!r}, which is "
            "neither; check the spelling, or give the path of a folder or archive of images"
        )
    for name, source in SOURCES.items():
        named = any(fnmatchcase(folder_name(place), glob) for glob in source.places)
        if named and (entries := _read(source, place, nested=True)):
            return _Found(name, place, entries, source.size)
    if entries := read_folder(place, file_names(place)):
        return _Found(str(data), place, entries, FOLDER_SIZE)
    raise DataNotFound(
        f"expected png, jpg, webp, bmp or tif images; came {place}, which holds none; "
        "give a folder that has some"
    )


def _scenes(size: int | None) -> _Found:
    """Analytic scenes are in no place: each is evaluated at the size asked for."""
    from radialbeams.training.data import scenes  # it makes image sets, so it cannot come first

    entries = scenes.scene_entries(range(scenes.COUNT), size or scenes.SIZE)
    return _Found("scenes", Path("scenes"), entries, scenes.SIZE)


def _find(name: str, root: Path | None) -> _Found:
    source = SOURCES[name]
    given = root or os.environ.get("RADIALBEAMS_DATA")
    top = Path(given).expanduser() if given else None
    for place in _places(source, top):
        # Not in the root itself: there a folder deeper down may be anyone's data.
        if entries := _read(source, place, nested=place != top or place.is_file()):
            return _Found(name, place, entries, source.size)
    looked = [f"{top / glob}" for glob in source.places] + [f"{top}"] if top else []
    where = ", ".join([*looked, *source.installed]) or "no place at all"
    raise DataNotFound(
        f"expected {name} as {source.layout}; came nothing of the kind in {where}; get it from "
        f"{source.official} ({source.licence}) and name the folder that holds it with --data DIR "
        "or RADIALBEAMS_DATA"
    )


def _places(source: DataSource, top: Path | None) -> Iterator[Path]:
    """Folders before archives, and `lfw.zip` before `lfw-4000.zip`: the whole before a part."""
    if top is not None and top.exists():
        found = {p for glob in source.places for p in top.glob(glob) if is_place(p)}
        yield from sorted(found, key=lambda p: (not p.is_dir(), len(p.name), p.name))
        yield top
    yield from (Path(p) for p in source.installed if Path(p).is_dir())


def _read(source: DataSource, place: Path, *, nested: bool) -> list[Member]:
    """An archive, and what was unpacked from one, often has one folder around it all."""
    names = file_names(place)
    return source.read(place, names) or (source.read(place, without_top(names)) if nested else [])


def _of_split(found: _Found, split: str, split_by: str) -> list[Member]:
    known = [name for name, source in SOURCES.items() if source.objects_known]
    if split_by == "object" and found.name not in known:
        raise ValueError(
            f"expected one of {', '.join(known)} for split_by='object'; got {found.name}; "
            "use split_by='default'; of other sets no objects are known"
        )

    def held_out(entry: Member) -> bool:
        if split_by == "object" and entry.object_key:
            return in_test(entry.object_key)
        if split_by == "object":
            return int(entry.group.removeprefix("obj")) > 80
        return in_test(entry.key) if entry.held_out is None else entry.held_out

    chosen = [e for e in found.entries if split == "all" or held_out(e) == (split == "test")]
    if not chosen:
        raise ValueError(
            f"expected images in the {split} split of {found.name}; came {len(found.entries)} "
            "images, none of them in it; use split='all', or add images: the split is by key, "
            "about one in five is test"
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
        text = f"skipped {len(skipped)} unreadable files of {place}, first {path}: {reason}"
        warnings.warn(text, stacklevel=3)
