"""A folder that is larger than memory: time of the first and the second epoch, and memory.

    python -m benchmarks.large_folder [--images 50000] [--size 256] [--keep FOLDER] [--steps 20]

An epoch reads every image once, in random order and in batches, as training does. The first one
finds the images undecoded: it includes decoding, writing the cache and its checksum. The scan, and
opening the cache in a later run, are listed on their own; `faster_reopened` counts the opening as
part of the second epoch. Then a network trains for some steps. The images are generated. On a busy
machine compare the processor seconds. Exits 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from PIL import Image

from radialbeams.nn.architectures import architecture
from radialbeams.training.data import ImageSet, workers
from radialbeams.training.fit import RELEASE_EVERY, Fit
from radialbeams.training.own.pixels import read
from radialbeams.training.own.scan import Scan, scan
from radialbeams.training.recipe import Recipe

FASTER, MOST_GIB = 5.0, 4.0  # the bars
BATCH = 128

Result = TypeVar("Result")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--steps", type=int, default=20, help="training steps at the end")
    parser.add_argument("--keep", type=Path, help="a folder for the images and the cache")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        figures = measure(
            arguments.keep or Path(scratch), arguments.images, arguments.size, arguments.steps
        )
    print(json.dumps(figures, indent=1))
    return 0 if figures["faster_reopened"] >= FASTER and figures["peak_gib"] < MOST_GIB else 1


def measure(folder: Path, images: int, size: int, steps: int) -> dict[str, float]:
    generate(folder / "images", images, size)
    contents, scanned = timed(lambda: scan(folder / "images"))
    parents, decoded = timed(lambda: everything(contents, size, folder / "cache"))
    _, first = timed(lambda: pass_over(parents))
    _, second = timed(lambda: pass_over(parents))
    parents, opened = timed(lambda: everything(contents, size, folder / "cache"))
    trained = train(parents, size, steps)
    own, children = (
        resource.getrusage(who).ru_maxrss / 2**20
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    first = Cost(decoded.wall + first.wall, decoded.processor + first.processor)
    return {
        "images": images,
        "cache_gib": images * 3 * size**2 / 2**30,
        "load": os.getloadavg()[0],
        "scan_seconds": scanned.wall,
        "first_epoch_seconds": first.wall,
        "second_epoch_seconds": second.wall,
        "first_epoch_processor_seconds": first.processor,
        "second_epoch_processor_seconds": second.processor,
        "opening_seconds": opened.wall,
        "faster": first.wall / second.wall,
        "faster_reopened": first.wall / (second.wall + opened.wall),
        "views_per_second": trained,
        "peak_gib": own,
        "peak_gib_of_a_worker": children,
    }


class Cost(NamedTuple):
    wall: float  # seconds
    processor: float  # of all processes


def timed(work: Callable[[], Result]) -> tuple[Result, Cost]:
    wall, processor = time.monotonic(), _processor_seconds()
    result = work()
    return result, Cost(time.monotonic() - wall, _processor_seconds() - processor)


def _processor_seconds() -> float:
    return sum(os.times()[:4])


def everything(contents: Scan, size: int, cache: Path) -> ImageSet:
    return read(contents, range(len(contents.images)), size, 3, cache)


def generate(folder: Path, count: int, size: int) -> None:
    """Soft blobs with grain as JPEG files; existing ones are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    existing = {path.name for path in folder.iterdir()}
    missing = [(folder, number, size) for number in range(count) if f"{number}.jpg" not in existing]
    with workers.pool() as pool:
        pool.starmap(_write, missing, chunksize=64)


def _write(folder: Path, number: int, size: int) -> None:
    rng = np.random.default_rng(number)
    coarse = Image.fromarray(rng.integers(0, 256, (9, 9, 3), dtype=np.uint8))
    pixels = np.asarray(coarse.resize((size, size), Image.Resampling.BICUBIC)).astype(np.int16)
    grain = rng.integers(-12, 13, (size, size, 1), dtype=np.int16)
    picture = Image.fromarray((pixels + grain).clip(0, 255).astype(np.uint8))
    picture.save(folder / f"{number}.jpg", quality=90)


def pass_over(images: ImageSet) -> int:
    """Every image once, in batches of random images."""
    total = 0
    for number, rows in enumerate(torch.randperm(len(images)).split(BATCH)):
        total += len(images.images[rows])
        if number % RELEASE_EVERY == 0:
            images.release()
    return total


def train(images: ImageSet, size: int, steps: int) -> float:
    """Views per second of a ring on the mapped images."""
    values = architecture("ring").defaults(size)
    recipe = Recipe.from_dict(
        {**values, "data": "generated", "parent_size": size, "batch": BATCH, "steps": steps}
    )
    with tempfile.TemporaryDirectory() as run:
        fit = Fit(recipe, images, Path(run), device=torch.device("cpu"), log_every=steps)
        fit.run()
        return steps * BATCH / fit.at.seconds


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
