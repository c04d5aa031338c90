"""Rendered pages as part of a cache of photos, from which a general model learns documents.

    python -m radialbeams.training.data.documents.squares MATERIAL CACHE --pages 12000 --size 192

Each page is cut to its centred square, as a photo is. Pages without an upright direction are
left out: their angle could not be learned. Each worker writes one part, completely or not at all.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from radialbeams.training.data import cache
from radialbeams.training.data.documents.material import Material
from radialbeams.training.data.documents.pool import worker_count
from radialbeams.training.data.documents.render import render
from radialbeams.training.data.pixels import square_bytes

GROUP = "documents"


def write_squares(
    material: Material, folder: Path, name: str, numbers: range, *, size: int, every: int, seed: int
) -> None:
    """Writes the pages of these numbers as one part, unless it exists."""
    if cache.holds(folder, name):
        return
    squares, keys, problems = [], [], {}
    for number in numbers:
        key = f"page-{seed}-{number}"
        try:
            page = render(material, seed, number)
        except (ValueError, OSError, ArithmeticError, IndexError, TypeError) as error:
            problems[key] = repr(error)  # one page in many thousands is not worth a worker
            continue
        if page.has_up:
            squares.append(square_bytes(Image.fromarray(page.pixels), size, 3))
            keys.append(key)
    pixels = np.stack(squares)  # (N, 3, size, size)
    cache.write_part(
        folder, name, pixels, keys, [GROUP] * len(keys), every=every, problems=problems
    )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m radialbeams.training.data.documents.squares")
    parser.add_argument("material", type=Path, help="the folder with fonts, texts and drawings")
    parser.add_argument("cache", type=Path)
    parser.add_argument("--pages", type=int, default=12_000)
    parser.add_argument("--size", type=int, required=True, help="side of the squares, in pixels")
    parser.add_argument(
        "--held-out", type=int, default=5, help="hold out one page in this many; default: 5"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=worker_count())
    arguments = parser.parse_args(argv)
    arguments.cache.mkdir(parents=True, exist_ok=True)
    write = partial(
        write_squares,
        Material(arguments.material),
        arguments.cache,
        size=arguments.size,
        every=arguments.held_out,
        seed=arguments.seed,
    )
    workers = [
        multiprocessing.get_context("fork").Process(
            target=write, args=(f"{GROUP}-{k:04d}", range(k, arguments.pages, arguments.workers))
        )
        for k in range(arguments.workers)
    ]
    for process in workers:
        process.start()
    for process in workers:
        process.join()
    return max((process.exitcode or 0) for process in workers)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
