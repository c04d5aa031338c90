"""Makes more cut-outs for SI-SCORE's composer from photos whose class is known.

    python tools/cutouts.py --data DIR --out DIR/imagenet-cutouts [--limit N]

DIR contains the ImageNet samples and SI-SCORE's samples, whose backgrounds are used. The segmenter
is OpenCV's GrabCut (Apache-2.0), which needs no weights: the border of the photo is marked as
background. It often fails, so a cut-out is kept only if it is one solid piece of a plausible size,
and if an ImageNet classifier recognises it on all backgrounds but one. Upright, all cut-outs are
therefore easy, and errors on rotated ones are caused by the rotation.

Writes foreground_samples/CLASS/NAME.png, background_samples/, foreground_classes.csv, counts.json,
and a contact sheet of all cut-outs.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from radialbeams.files import write_whole
from radialbeams.front.classifiers import Classifier, load_classifier
from radialbeams.training.data import place_of, siscore
from radialbeams.training.data.archives import file_names, read_file, without_top
from radialbeams.training.data.members import IMAGES, matches
from radialbeams.training.data.pixels import open_image
from radialbeams.training.data.sources import SOURCES

Mask = NDArray[np.uint8]

LONGER_SIDE = 320  # pixels of a photo for segmentation
BORDER = 0.06  # share of a photo that is background
ITERATIONS = 6
ONE_PIECE = 0.85  # share of the foreground in its largest piece
HOLE = 0.01  # of the photo: smaller holes are closed
AREA = (0.08, 0.6)  # of the photo
SOLID = 0.6  # of the convex hull
SEEN_AT = 0.5  # share of the scene that the object covers for the classifier
MISSES = 1  # backgrounds on which the classifier may be wrong
COLUMNS, CELL = 20, 84  # of the sheet


class Unfit(Exception):
    """The photo gives no usable cut-out; the message is the reason."""


def cut_out(photo: Image.Image) -> Image.Image:
    """The object with an alpha channel, tightly cropped."""
    scale = LONGER_SIDE / max(photo.size)
    width, height = (max(1, round(side * scale)) for side in photo.size)
    pixels = np.asarray(photo.resize((width, height), Image.Resampling.LANCZOS))
    mask = closed(largest_piece(foreground(pixels)))
    if not AREA[0] < mask.mean() < AREA[1]:
        raise Unfit("too small or too large")
    if solidity(mask) < SOLID:
        raise Unfit("not solid")
    soft = cv2.GaussianBlur(mask * np.float32(255), (0, 0), 1).astype(np.uint8)
    rows, columns = np.nonzero(mask)
    inside = slice(rows.min(), rows.max() + 1), slice(columns.min(), columns.max() + 1)
    return Image.fromarray(np.ascontiguousarray(np.dstack((pixels, soft))[inside]), "RGBA")


def foreground(pixels: NDArray[np.uint8]) -> Mask:
    """GrabCut's mask: 1 on the object, 0 elsewhere."""
    height, width = pixels.shape[:2]
    left, top = round(BORDER * width), round(BORDER * height)
    box = (left, top, width - 2 * left, height - 2 * top)
    mask: Mask = np.zeros((height, width), np.uint8)
    cv2.setRNGSeed(0)  # its mixtures are initialised at random
    ground, figure = np.zeros((1, 65)), np.zeros((1, 65))
    cv2.grabCut(
        cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR),
        mask,
        box,
        ground,
        figure,
        ITERATIONS,
        cv2.GC_INIT_WITH_RECT,
    )
    inside = np.isin(mask, (cv2.GC_FGD, cv2.GC_PR_FGD)).astype(np.uint8)
    return np.asarray(cv2.morphologyEx(inside, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)), np.uint8)


def largest_piece(mask: Mask) -> Mask:
    count, labels, figures, _ = cv2.connectedComponentsWithStats(mask)
    if count < 2:
        raise Unfit("nothing found")
    areas = figures[1:, cv2.CC_STAT_AREA]
    if areas.max() < ONE_PIECE * areas.sum():
        raise Unfit("in pieces")
    return (labels == 1 + areas.argmax()).astype(np.uint8)


def closed(mask: Mask) -> Mask:
    """The mask with small holes closed."""
    count, labels, figures, _ = cv2.connectedComponentsWithStats(1 - mask)
    small = [k for k in range(1, count) if figures[k, cv2.CC_STAT_AREA] < HOLE * mask.size]
    return np.where(np.isin(labels, small), 1, mask).astype(np.uint8)


def solidity(mask: Mask) -> float:
    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    hull = cv2.convexHull(max(contours, key=cv2.contourArea))
    return float(mask.sum()) / max(cv2.contourArea(hull), 1.0)


def named(
    cutout: Image.Image, scenes: list[Image.Image], classifier: Classifier, label: int
) -> bool:
    """Whether the classifier recognises it, upright, on all scenes but MISSES."""
    size = (classifier.size, classifier.size)
    images = [
        np.array(siscore.compose(cutout, scene, SEEN_AT, 0).resize(size, Image.Resampling.LANCZOS))
        for scene in scenes
    ]
    batch = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2) / 255
    wrong = int((classifier(batch).argmax(1) != label).sum())
    return wrong <= MISSES


# --- the files ---


def photos(data: Path, limit: int | None) -> list[tuple[str, int, Callable[[], Image.Image]]]:
    """Name, ImageNet index, and a function that opens the photo."""
    source = place_of("imagenet-samples", data)
    names = file_names(source)
    read = SOURCES["imagenet-samples"].read
    members = read(source, names) or read(source, without_top(names))
    return [
        (Path(entry.path).stem, int(entry.group), partial(_opened, source, entry.path))
        for entry in sorted(members, key=lambda entry: entry.path)[:limit]
    ]


def _opened(source: Path, path: str) -> Image.Image:
    return open_image(read_file(source, path), LONGER_SIDE).convert("RGB")


def copy_backgrounds(data: Path, out: Path) -> list[Image.Image]:
    """Copies SI-SCORE's backgrounds next to the cut-outs, and returns them as scenes."""
    source = place_of("si-score", data)
    names = file_names(source)
    backgrounds = matches(rf"background_samples/([^/]+\.{IMAGES})", {**names, **without_top(names)})
    if not backgrounds:
        raise SystemExit(f"Expected SI-SCORE's samples with background_samples/ in {source}.")
    for match, path in backgrounds:
        content = read_file(source, path)
        write_whole(out / "background_samples" / match[1], partial(_write, content))
    return [
        siscore.as_scene(open_image(read_file(source, path), siscore.SCENE).convert("RGB"))
        for _, path in backgrounds
    ]


def _write(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def valid(
    data: Path, scenes: list[Image.Image], limit: int | None, counts: Counter[str]
) -> Iterator[tuple[str, int, Image.Image]]:
    classifier = load_classifier()
    todo, started = photos(data, limit), time.monotonic()
    for number, (name, label, read) in enumerate(todo, 1):
        try:
            cutout = cut_out(read())
            if not named(cutout, scenes, classifier, label):
                raise Unfit("not named")
            counts["kept"] += 1
            yield name, label, cutout
        except Unfit as reason:
            counts[str(reason)] += 1
        if number % 25 == 0 or number == len(todo):
            seconds_left = (time.monotonic() - started) * (len(todo) - number) / number
            progress = f"{number} of {len(todo)} photos, {counts['kept']} kept"
            print(f"{progress}, {seconds_left:.0f} s left", file=sys.stderr, flush=True)


def write_sheet(cutouts: list[Image.Image], path: Path) -> None:
    rows = -(-len(cutouts) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * CELL, max(1, rows) * CELL), (170, 190, 200))
    for number, cutout in enumerate(cutouts):
        small = cutout.copy()
        small.thumbnail((CELL - 6, CELL - 6))
        row, column = divmod(number, COLUMNS)
        sheet.paste(small, (column * CELL + 3, row * CELL + 3), small)
    write_whole(path, partial(sheet.save, format="PNG"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("RADIALBEAMS_DATA"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=int)
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error(
            "expected the folder of the data sets; give it by --data or in RADIALBEAMS_DATA"
        )
    if arguments.out.exists():
        parser.error(f"{arguments.out} already exists; remove it or name another folder")
    unfinished = arguments.out.with_name(f".{arguments.out.name}.{os.getpid()}")
    try:
        counts = make(Path(arguments.data), unfinished, arguments.limit)
        unfinished.rename(arguments.out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    print(json.dumps(dict(counts)))


def make(data: Path, out: Path, limit: int | None) -> Counter[str]:
    counts: Counter[str] = Counter()
    scenes = copy_backgrounds(data, out)
    labels, cutouts = {}, []
    for name, label, cutout in valid(data, scenes, limit, counts):
        folder = f"{label:04d}"
        labels[folder] = label
        cutouts.append(cutout)
        path = out / "foreground_samples" / folder / f"{name}.png"
        write_whole(path, partial(cutout.save, format="PNG"))
    with (out / siscore.CLASSES).open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("label", "int"))
        table.writerows(labels.items())
    (out / "counts.json").write_text(json.dumps(dict(counts), indent=1) + "\n", encoding="utf-8")
    write_sheet(cutouts, out / "sheet.png")
    return counts


if __name__ == "__main__":
    main()
