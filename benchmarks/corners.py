"""Corners taken for background, and background taken for corners.

    python benchmarks/corners.py --data DATA [--count 1000] [--turned 250]

For pictures of each set, unturned: how often corners are found where there are none. For some of
them turned with all of their content kept, on black, white, a random colour and transparent
corners, as PNG or JPEG: how often they are found where they matter, and how large the picture is
then taken to be against how large it is. One JSON object a line.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from radialbeams.images import read_small, turn
from radialbeams.images.corners import HARMLESS, picture_share

ARCHIVES = ("coil-100.zip", "imagenet-1000-samples.zip", "lfw-4000.zip", "coco-1030.zip")
FILLS = ("black", "white", "random", "transparent", "jpeg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--turned", type=int, default=250)
    arguments = parser.parse_args()
    for name in ARCHIVES:
        pictures = list(members(arguments.data / name, arguments.count))
        print(json.dumps({"data": name, **false_alarms(pictures)}), flush=True)
        some = pictures[:: max(1, len(pictures) // arguments.turned)]
        for fill in FILLS:
            print(json.dumps({"data": name, "fill": fill, **found(some, fill)}), flush=True)


def members(archive: Path, count: int) -> Iterator[tuple[str, Image.Image]]:
    """Evenly spaced images of an archive, read as a model sees them."""
    with zipfile.ZipFile(archive) as files:
        names = [name for name in sorted(files.namelist()) if name.endswith((".jpg", ".webp"))]
        for name in names[:: max(1, len(names) // count)][:count]:
            yield name, read_small(files.read(name), 128)


def false_alarms(pictures: list[tuple[str, Image.Image]]) -> dict[str, object]:
    start = time.perf_counter()
    alarms = [name for name, picture in pictures if picture_share(picture) is not None]
    each = (time.perf_counter() - start) / len(pictures)
    return {
        "n": len(pictures),
        "false_alarms": len(alarms),
        "microseconds": round(each * 1e6),
        "which": alarms[:8],
    }


def found(pictures: list[tuple[str, Image.Image]], fill: str) -> dict[str, object]:
    """Only turns whose corners reach what a model sees are counted."""
    rng = np.random.default_rng(0)
    errors, missed = [], 0
    for _, picture in pictures:
        colour = "#" + rng.bytes(3).hex() if fill in ("random", "jpeg") else fill
        turned = turn(picture, rng.uniform(0, 360), fill=colour)
        true = min(picture.size) / min(turned.size)
        if true >= HARMLESS:
            continue
        share = picture_share(saved(turned, "JPEG" if fill == "jpeg" else "PNG"))
        if share is None:
            missed += 1
        else:
            errors.append(share / true - 1)
    count = len(errors) + missed
    return {
        "n": count,
        "found": round(len(errors) / count, 4),
        "size_error_mean": round(float(np.mean(errors)), 4) if errors else math.nan,
        "size_error_max": round(float(np.abs(errors).max()), 4) if errors else math.nan,
    }


def saved(picture: Image.Image, format: str) -> Image.Image:
    stream = io.BytesIO()
    picture.save(stream, format, **({"quality": 85} if format == "JPEG" else {"compress_level": 1}))
    return read_small(stream.getvalue(), 128)


if __name__ == "__main__":
    main()
