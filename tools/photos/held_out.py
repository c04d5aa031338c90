"""Writes the held-out photos of a squashed source as squares, with their JPEG grid removed.

    python tools/photos/held_out.py train2017 photos/reasons.jsonl OUT [--size 192] [--whole]

Squashed photos are small JPEGs whose block grid is aligned with the upright direction. A model that
was trained on such photos may read that grid. Other photos do not have it, so a calibration on
unprocessed photos would be too optimistic. REASONS is written by `prepare.py`: only photos that it
kept are used. With `--whole`, photos have their native shape, and `--size` is their shorter side.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from clean import square
from PIL import Image
from prepare import held_out

from radialbeams.training.data.deblocking import deblocked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", type=Path)
    parser.add_argument("reasons", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", type=int, default=192)
    parser.add_argument("--whole", action="store_true", help="not only the square in the middle")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for line in arguments.reasons.open(encoding="utf-8"):
        row = json.loads(line)
        if row["reason"] or not held_out(row["name"]):
            continue
        with Image.open(arguments.photos / f"{row['name']}.jpg") as photo:
            even = deblocked(photo)
        native = tuple(row["native"])
        if arguments.whole:
            shape = tuple(round(side * arguments.size / min(native)) for side in native)
            small = even.convert("RGB").resize(shape, Image.Resampling.LANCZOS)
        else:
            small = square(even, native, arguments.size)
        small.save(arguments.out / f"{row['name']}.png")


if __name__ == "__main__":
    main()
