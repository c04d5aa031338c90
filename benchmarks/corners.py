"""How often filled corners are missed, and how often content is mistaken for filled corners.

    python benchmarks/corners.py SET… [--count 1000] [--turned 250] [--side 128]

A set is a folder of upright pictures, or an archive of them. For pictures that are not rotated: how
often corners are detected although there are none. Some pictures are rotated by Pillow at full size
with all of their content, on black, white, a random colour and transparent corners, and saved as
PNG or JPEG. Of those whose corners reach into the model's view: how many are detected; in how many
of these the visible disc is free of fill; and in how many it is at least 90% as wide as possible.
Prints one JSON object per line.
"""

from __future__ import annotations

import argparse
import io
import json
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from radialbeams.images import read_small
from radialbeams.images.corners import picture_share
from radialbeams.images.views import REACH

ENDINGS = (".jpg", ".jpeg", ".png", ".webp")
# Fill of the corners and file format; a colour of None is drawn at random.
FILLS: dict[str, tuple[str | None, str]] = {
    "black": ("black", "PNG"),
    "white": ("white", "PNG"),
    "random": (None, "PNG"),
    "transparent": ("transparent", "PNG"),
    "black jpeg": ("black", "JPEG"),
    "white jpeg": ("white", "JPEG"),
    "random jpeg": (None, "JPEG"),
}
SAVING: dict[str, dict[str, int]] = {"JPEG": {"quality": 90}, "PNG": {"compress_level": 1}}
WIDE_ENOUGH = 0.9  # of the widest disc without fill


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--turned", type=int, default=250)
    parser.add_argument("--side", type=int, default=128, help="of the parent that a model needs")
    arguments = parser.parse_args()
    for path in arguments.sets:
        files = list(members(path, arguments.count))
        print(json.dumps({"data": path.stem, **false_alarms(files, arguments.side)}), flush=True)
        sample = files[:: max(1, len(files) // arguments.turned)][: arguments.turned]
        for fill in FILLS:
            row = {"data": path.stem, "fill": fill, **measured_row(sample, fill, arguments.side)}
            print(json.dumps(row), flush=True)


def members(path: Path, count: int) -> Iterator[tuple[str, bytes]]:
    """Evenly spaced files of a folder or an archive."""
    if path.is_dir():
        paths = sorted(file for file in path.rglob("*") if file.suffix.lower() in ENDINGS)
        for file in spaced(paths, count):
            yield file.name, file.read_bytes()
        return
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if name.lower().endswith(ENDINGS))
        for name in spaced(names, count):
            yield name, archive.read(name)


def spaced(every: list[Any], count: int) -> list[Any]:
    return every[:: max(1, len(every) // count)][:count]


def false_alarms(files: list[tuple[str, bytes]], side: int) -> dict[str, object]:
    alarms, seconds = [], 0.0
    for name, data in files:
        picture = read_small(data, side)
        start = time.process_time()
        if picture_share(picture) is not None:
            alarms.append(name)
        seconds += time.process_time() - start
    return {
        "n": len(files),
        "false_alarms": len(alarms),
        "microseconds": round(seconds / len(files) * 1e6),
        "which": alarms[:8],
    }


def measured_row(files: list[tuple[str, bytes]], fill: str, side: int) -> dict[str, object]:
    """Counts only rotations whose corners reach into the model's view."""
    rng = np.random.default_rng(0)
    sizes, missed = [], []
    for name, data in files:
        upright = Image.open(io.BytesIO(data)).convert("RGB")
        turned, format = turned_on(fill, upright, rng)
        true = min(upright.size) / min(turned.size)
        if true >= REACH:
            continue
        share = picture_share(saved(turned, format, side))
        if share is None:
            missed.append(name)
        else:
            sizes.append(share / true)
    count = len(sizes) + len(missed)
    return {
        "n": count,
        "found": round(len(sizes) / count, 4),
        "free_of_fill": round(float(np.mean([size <= 1 / REACH for size in sizes])), 4),
        "wide_enough": round(float(np.mean([size >= WIDE_ENOUGH for size in sizes])), 4),
        "smallest": round(min(sizes), 4),
        "largest": round(max(sizes), 4),
        "missed": missed[:8],
    }


def turned_on(fill: str, upright: Image.Image, rng: np.random.Generator) -> tuple[Image.Image, str]:
    """The whole picture on its fill, and the format to save it in."""
    colour, format = FILLS[fill]
    drawn, degrees = "#" + rng.bytes(3).hex(), rng.uniform(0, 360)
    if colour == "transparent":
        upright, colour = upright.convert("RGBA"), "#00000000"
    turned = upright.rotate(
        degrees, Image.Resampling.BICUBIC, expand=True, fillcolor=colour or drawn
    )
    return turned, format


def saved(picture: Image.Image, format: str, side: int) -> Image.Image:
    stream = io.BytesIO()
    picture.save(stream, format, **SAVING[format])
    return read_small(stream.getvalue(), side)


if __name__ == "__main__":
    main()
