"""A cache of decoded images: squares of bytes in memory-mapped files.

    python -m radialbeams.training.data.cache PLACE CACHE --size 192 [--held-out 50]

PLACE is a folder or archive of upright images. A part of the cache is NAME.bytes, (N, C, W, W),
and NAME.json, which lists the images and the sha256 of the bytes. The index is written last, so a
part is complete or absent, and a killed run repeats at most one. Several places may share a cache.

If the place contains `sizes.csv` (id,width,height), images are restored to these aspect ratios.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from radialbeams.files import sha256, write_whole
from radialbeams.training.data.archives import file_names, folder_name, read_file, read_files
from radialbeams.training.data.deblocking import deblocked
from radialbeams.training.data.deblocking_device import deblocked_pixels, tables_of
from radialbeams.training.data.decoding import decode
from radialbeams.training.data.members import Member
from radialbeams.training.data.pixels import open_image
from radialbeams.training.data.sets import SPLITS, ImageSet
from radialbeams.training.data.sources import read_folder

PREFIX = "cache:"  # marks a cache folder in --data
SIZES = "sizes.csv"
PART = 8192  # images per part

Size = tuple[int, int]


class DamagedCache(ValueError):
    """The bytes of a part do not match its index."""


@dataclass(frozen=True)
class Index:
    """The contents of a part, and why some images could not be read."""

    shape: tuple[int, int, int, int]
    keys: tuple[str, ...]
    groups: tuple[str, ...]
    held_out: tuple[bool, ...]
    problems: dict[str, str]
    sha256: str


# --- writing ---------------------------------------------------------------------------------


def build(
    place: Path,
    folder: Path,
    *,
    size: int,
    channels: int = 3,
    every: int = 5,
    group: str | None = None,
    deblock: bool = False,
    device: torch.device | None = None,
) -> Iterator[tuple[str, Index]]:
    """Decodes the parts that the cache lacks; yields each part's name and index.

    One image in `every` is held out, by the sha256 of its key. `group` is the group of all images.
    `deblock` removes the block grid of JPEGs, for files that are not much larger than `size`.
    A `device` deblocks batches, and then all files must be colour JPEGs of one square size.
    """
    names = file_names(place)
    members = read_folder(place, names)
    if not members:
        raise ValueError(
            f"Expected png, jpg, webp, bmp or tif images in {place}; got none. Check the path."
        )
    sizes = read_sizes(place, names[SIZES]) if SIZES in names else {}
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, len(members), PART)):
        name = f"{folder_name(place)}-{number:04d}"
        if not holds(folder, name):
            part = members[start : start + PART]
            if deblock and device is not None:
                chosen = _ready_by_device(place, part, sizes, size, device)
            else:
                chosen = _ready(place, part, sizes, size, deblock)
            _write_part(folder, name, place, chosen, size, channels, every, group)
        yield name, read_index(folder, name)


def _ready(
    place: Path, members: Sequence[Member], sizes: Mapping[str, Size], size: int, deblock: bool
) -> list[Member]:
    """Members that open themselves; an archive is read here, once."""
    wanted = {member.path for member in members}
    data = {} if place.is_dir() else dict(read_files(place, wanted))
    return [
        Member(
            member.path,
            member.key,
            member.group,
            partial(
                _opened,
                data.get(member.path, place / member.path),
                sizes.get(member.key),
                size,
                deblock,
            ),
        )
        for member in members
    ]


def _ready_by_device(
    place: Path,
    members: Sequence[Member],
    sizes: Mapping[str, Size],
    size: int,
    device: torch.device,
) -> list[Member]:
    """As `_ready`, but already decoded and deblocked."""
    wanted = {member.path for member in members}
    files = {path: data for path, data in read_files(place, wanted) if isinstance(data, bytes)}
    unsuitable = ValueError(
        f"Expected intact JPEGs of one square size in {place}; got others. Leave --device out: "
        "images are then deblocked one at a time."
    )
    try:
        tables = {path: table for path, data in files.items() if (table := tables_of(data))}
    except OSError as error:
        raise unsuitable from error
    if len(tables) < len(members):
        raise unsuitable
    with Image.open(io.BytesIO(files[members[0].path])) as first:
        side = first.width
    stored = [replace(e, make=partial(open_image, files[e.path], side)) for e in members]
    pixels, problems = decode(place, stored, side, 3)
    if problems:
        raise unsuitable
    pixels = deblocked_pixels(pixels, [tables[member.path] for member in members], device)
    return [
        replace(member, make=partial(_from_pixels, pixels[row], sizes.get(member.key), size))
        for row, member in enumerate(members)
    ]


def _from_pixels(pixels: NDArray[np.uint8], native: Size | None, size: int) -> Image.Image:
    image = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    return image if native is None else unsquashed(image, native, size)


def _opened(
    data: bytes | Exception | Path, native: Size | None, size: int, deblock: bool
) -> Image.Image:
    if isinstance(data, Exception):
        raise data
    image = open_image(data.read_bytes() if isinstance(data, Path) else data, size)
    if deblock:
        image = deblocked(image)
    return image if native is None else unsquashed(image, native, size)


def unsquashed(image: Image.Image, native: Size, size: int) -> Image.Image:
    """The centred square, (size, size), of a picture restored to its native aspect ratio."""
    side = min(native)
    across, down = image.width / native[0], image.height / native[1]
    left, top = (native[0] - side) // 2, (native[1] - side) // 2
    box = (left * across, top * down, (left + side) * across, (top + side) * down)
    return image.convert("RGB").resize((size, size), Image.Resampling.LANCZOS, box=box)


def read_sizes(place: Path, name: str) -> dict[str, Size]:
    rows = csv.DictReader(read_file(place, name).decode().splitlines())
    return {row["id"]: (int(row["width"]), int(row["height"])) for row in rows}


def held_out(key: str, every: int) -> bool:
    """True for one key in `every`, the same on every machine."""
    digest = hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()
    return int(digest, 16) % every == 0


def _write_part(
    folder: Path,
    name: str,
    place: Path,
    members: Sequence[Member],
    size: int,
    channels: int,
    every: int,
    group: str | None,
) -> None:
    pixels, problems = decode(place, members, size, channels)
    decoded = [member for row, member in enumerate(members) if row not in problems]
    write_part(
        folder,
        name,
        pixels,
        [member.key for member in decoded],
        [member.group if group is None else group for member in decoded],
        every=every,
        problems={members[row].path: problem for row, problem in problems.items()},
    )


def write_part(
    folder: Path,
    name: str,
    pixels: NDArray[np.uint8],
    keys: Sequence[str],
    groups: Sequence[str],
    *,
    every: int,
    problems: dict[str, str],
) -> None:
    """Writes pixels (N, C, W, W), then their index."""
    path = bytes_path(folder, name)
    write_whole(path, pixels.tofile)
    index = Index(
        tuple(pixels.shape),
        tuple(keys),
        tuple(groups),
        tuple(held_out(key, every) for key in keys),
        problems,
        sha256(path),
    )
    write_index(folder, name, index)


def write_index(folder: Path, name: str, index: Index) -> None:
    text = json.dumps(asdict(index))
    write_whole(index_path(folder, name), lambda part: part.write_text(text, encoding="utf-8"))


# --- reading ---------------------------------------------------------------------------------


def read(folder: Path, name: str, *, split: str = "all", limit: int | None = None) -> ImageSet:
    """The images of a split, after checking the sha256 of every part.

    `name` is the name of the data set. `limit` takes evenly spaced images of the split.
    """
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}; got {split!r}.")
    parts = [(part, read_index(folder, part)) for part in part_names(folder)]
    shapes = {index.shape[1:] for _, index in parts}
    if len(shapes) > 1:
        raise ValueError(
            f"{folder} has images of several shapes: {sorted(shapes)}. Use one cache per shape."
        )
    chosen = [
        (part, row)
        for part, (_, index) in enumerate(parts)
        for row, is_test in enumerate(index.held_out)
        if split == "all" or is_test == (split == "test")
    ]
    if not chosen:
        raise ValueError(f"{folder} contains no images of the split {split!r}. Build it first.")
    if limit is not None and limit < len(chosen):
        chosen = [chosen[i * len(chosen) // limit] for i in range(limit)]
    images = _gathered(folder, parts, chosen)
    keys, groups = (
        tuple(getattr(parts[part][1], field)[row] for part, row in chosen)
        for field in ("keys", "groups")
    )
    return ImageSet(name, torch.from_numpy(images), keys, groups)


def holds(folder: Path, name: str) -> bool:
    return index_path(folder, name).exists()


def part_names(folder: Path) -> list[str]:
    names = sorted(path.stem for path in folder.glob("*.json"))
    if not names:
        raise ValueError(
            f"Expected a cache of decoded images in {folder}; found none. Make it with "
            "`python -m radialbeams.training.data.cache PLACE CACHE --size SIZE`."
        )
    return names


def read_index(folder: Path, name: str) -> Index:
    values = json.loads(index_path(folder, name).read_text(encoding="utf-8"))
    lists = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    return Index(**{**values, **lists})


def _gathered(
    folder: Path, parts: Sequence[tuple[str, Index]], chosen: Sequence[tuple[int, int]]
) -> NDArray[np.uint8]:
    """The chosen (part, row) pairs in one array; each part is checked and copied by a thread."""
    out = np.empty((len(chosen), *parts[0][1].shape[1:]), np.uint8)
    which = np.array(chosen)  # (N, 2)

    def copy(number: int) -> None:
        name, index = parts[number]
        rows = np.flatnonzero(which[:, 0] == number)
        if len(rows):
            # The rows of a part are contiguous in the output.
            out[rows[0] : rows[-1] + 1] = mapped(folder, name, index)[which[rows, 1]]

    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        list(pool.map(copy, range(len(parts))))
    return out


def mapped(folder: Path, name: str, index: Index) -> np.memmap:
    """(N, C, W, W), memory-mapped after checking its sha256."""
    path = bytes_path(folder, name)
    if path.stat().st_size != np.prod(index.shape) or sha256(path) != index.sha256:
        raise DamagedCache(
            f"{path} does not match the sha256 in its index. Remove "
            f"{index_path(folder, name).name} and build the cache again."
        )
    return np.memmap(path, np.uint8, "r", shape=index.shape)


def bytes_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.bytes"


def index_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m radialbeams.training.data.cache")
    parser.add_argument("places", type=Path, nargs="+", metavar="PLACE")
    parser.add_argument("cache", type=Path)
    parser.add_argument("--size", type=int, required=True, help="side of the squares, in pixels")
    parser.add_argument("--channels", type=int, default=3)
    parser.add_argument(
        "--held-out", type=int, default=5, help="hold out one image in this many; default: 5"
    )
    parser.add_argument("--deblock", action="store_true", help="remove the block grid of JPEGs")
    parser.add_argument("--device", type=torch.device, help="device for deblocking, such as cuda")
    parser.add_argument("--group", help="the group of all images; default: their folder")
    arguments = parser.parse_args(argv)
    for place in arguments.places:
        for name, index in build(
            place,
            arguments.cache,
            size=arguments.size,
            channels=arguments.channels,
            every=arguments.held_out,
            group=arguments.group,
            deblock=arguments.deblock,
            device=arguments.device,
        ):
            line = {"part": name, "images": index.shape[0], "unreadable": len(index.problems)}
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
