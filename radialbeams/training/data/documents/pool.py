"""A pool of rendered pages on disk that grows while a network trains on it.

POOL/pages.u8 holds (capacity, side, side) gray pixels, POOL/marks.u8 (capacity, 4) bytes: flags,
kind, layout, script. A page's flags are written after its pixels, so a reader that sees them sees
the whole page. The content of a page depends on seed and number alone.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radialbeams.images.levelling import measure_skew
from radialbeams.images.page import ground, page_view
from radialbeams.training.data.documents.material import SCRIPT_WEIGHTS, Material
from radialbeams.training.data.documents.papers import PAPERS
from radialbeams.training.data.documents.render import KINDS, SCREENS, RenderedPage, render
from radialbeams.training.data.documents.wear import softened
from radialbeams.training.data.documents.without_up import WITHOUT_UP

READY, HAS_UP, DOCUMENT, PHOTO = 1, 2, 4, 8
POOL_KINDS = (*KINDS, "photo")
LAYOUTS = (
    "drawing",
    "photo",
    *(layout.__name__ for table in (PAPERS, SCREENS, WITHOUT_UP) for layout in table),
)
POOL_SCRIPTS = ("none", *SCRIPT_WEIGHTS)
PHOTO_EVERY = 6  # pages, if there are photos
CLOSE = 0.35  # share of pages that are parts of one, as in the network's close-up views
LEVELLED = 0.3  # share of the others that were rotated on a plain canvas and levelled again
MARKS = 4


@dataclass(frozen=True)
class PagePool:
    """The two files, mapped into memory."""

    pages: NDArray[np.uint8]  # (capacity, side, side)
    marks: NDArray[np.uint8]  # (capacity, MARKS)

    def ready(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.marks[:, 0])


def create_pool(folder: Path, capacity: int, side: int, seed: int) -> PagePool:
    """A new pool, or the existing one if it has the same shape and seed."""
    folder.mkdir(parents=True, exist_ok=True)
    card = {"capacity": capacity, "side": side, "seed": seed}
    path = folder / "pool.json"
    if path.exists():
        if (stored := json.loads(path.read_text(encoding="utf-8"))) != card:
            raise ValueError(
                f"Expected {folder} to hold a pool of {card}; it holds {stored}. Use a new folder."
            )
        return open_pool(folder, write=True)
    for name, length in (("pages.u8", capacity * side * side), ("marks.u8", capacity * MARKS)):
        with (folder / name).open("wb") as file:
            file.truncate(length)
    path.write_text(json.dumps(card) + "\n", encoding="utf-8")
    return open_pool(folder, write=True)


def open_pool(folder: Path, *, write: bool = False) -> PagePool:
    path = folder / "pool.json"
    if not path.exists():
        raise ValueError(
            f"Expected a pool of pages in {folder}; found none. Fill one first: "
            "python -m radialbeams.training.data.documents MATERIAL POOL."
        )
    card = json.loads(path.read_text(encoding="utf-8"))
    mode: Literal["r", "r+"] = "r+" if write else "r"
    shape = (card["capacity"], card["side"], card["side"])
    pages: NDArray[np.uint8] = np.memmap(folder / "pages.u8", np.uint8, mode, shape=shape)
    marks: NDArray[np.uint8] = np.memmap(
        folder / "marks.u8", np.uint8, mode, shape=(shape[0], MARKS)
    )
    return PagePool(pages, marks)


def fill(
    folder: Path,
    material_folder: Path,
    photos: Sequence[str],
    *,
    seed: int,
    worker: int,
    workers: int,
    report: Callable[[dict[str, object]], None] | None = None,
) -> None:
    """Fills the empty places of this worker's share; called once in each worker process."""
    material, pool = Material(material_folder), open_pool(folder, write=True)
    begun, count = time.monotonic(), 0
    for number in range(worker, len(pool.pages), workers):
        if pool.marks[number, 0]:
            continue
        try:
            pixels, marks = make_entry(material, photos, seed, number, pool.pages.shape[1])
        except (ValueError, OSError, ArithmeticError, IndexError, TypeError) as error:
            # One page in many thousands is not worth a worker; its place stays empty.
            if report is not None:
                report({"page": number, "left_out": repr(error)})
            continue
        pool.pages[number] = pixels
        pool.marks[number, 1:] = marks[1:]
        pool.marks[number, 0] = marks[0]
        count += 1
        if report is not None and worker == 0 and count % 100 == 0:
            rate = count / (time.monotonic() - begun)
            report({"pages": int(number), "pages_per_second_and_core": round(rate, 2)})


def make_entry(
    material: Material, photos: Sequence[str], seed: int, number: int, side: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """(side, side) pixels and the page's marks."""
    rng = Random(f"entry {seed} {number}")
    if photos and number % PHOTO_EVERY == PHOTO_EVERY - 1:
        with Image.open(rng.choice(photos)) as opened:
            photo = softened(_possibly_turned(opened.convert("L"), rng), rng)
        page = RenderedPage(np.asarray(photo), "photo", "photo", "none")
        trim = rng.random() < 0.7
    else:
        close = rng.random() < CLOSE
        page = render(material, seed, number, close=close)
        trim = rng.random() < 0.75 and not close
    image = Image.fromarray(page.pixels)
    if trim and page.kind != "photo" and rng.random() < LEVELLED:
        image = _levelled_again(image, rng)
    pixels = page_view(image, side, trim=trim)
    flags = READY | (HAS_UP if page.has_up else 0)
    flags |= 0 if page.kind in ("drawing", "photo") else DOCUMENT
    flags |= PHOTO if page.kind == "photo" else 0
    places = (
        POOL_KINDS.index(page.kind),
        LAYOUTS.index(page.layout),
        POOL_SCRIPTS.index(page.script),
    )
    return pixels, np.array((flags, *places), np.uint8)


def _possibly_turned(photo: Image.Image, rng: Random) -> Image.Image:
    """A photo; half of them were turned, and levelled by whatever lines they show."""
    if rng.random() < 0.5:
        return photo
    fill = rng.choice((0, 0, 255))
    turned = photo.rotate(
        rng.uniform(0, 360), Image.Resampling.BILINEAR, expand=True, fillcolor=fill
    )
    skew = measure_skew(turned).skew_degrees
    return turned.rotate(-skew, Image.Resampling.BILINEAR, expand=True, fillcolor=fill)


def _levelled_again(page: Image.Image, rng: Random) -> Image.Image:
    """A page that was rotated with filled corners, and levelled to a fraction of a degree."""
    fill, angle = rng.choice((0, 0, 255, ground(page))), rng.uniform(-45, 45)
    turned = page.rotate(angle, Image.Resampling.BICUBIC, expand=True, fillcolor=fill)
    level = -angle + rng.gauss(0, 0.15)
    return turned.rotate(level, Image.Resampling.BILINEAR, expand=True, fillcolor=ground(turned))


def worker_count() -> int:
    """The number of rendering processes; one core stays free for the reader."""
    return max(1, len(os.sched_getaffinity(0)) - 1)
