"""Measures a model on files of everyday photos: rotated by Pillow, read by the commands.

    python tools/photos/measure_photos.py PHOTOS [--model ring] [--out results/photos-files.json]

PHOTOS is a folder of upright photos that the model was not trained on. Each is rotated at full size
(bicubic) by a uniformly random angle and saved as JPEG q90, in two ways: on its own canvas, where
no filled corner reaches into the disc that the model sees; and with a third of the files on an
enlarged canvas, with corners of a random colour or transparent. `radialbeams angle` reads the
files, and `radialbeams upright` processes them and the upright photos with its defaults. To check
whether the model reads the block grid of stored JPEGs, the photos are also rotated after halving
their size, and after a blur that removes the grid. Last, they are cut to the largest upright
rectangle inside the rotated photo: no canvas is left, as in a photo by a tilted camera.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageFilter, ImageOps

from radialbeams import zoo
from radialbeams.training.evaluate import summarise
from radialbeams.training.views import draws

QUALITY = 90
ENDINGS = (".jpg", ".jpeg", ".png", ".webp")
NEAR, WORSE = 5.0, 1.0  # degrees: counts as upright; counts as made worse
FIGURES: tuple[str, ...] = ("n", "mean", "median", "p95", "within_5", "within_10", "flips")
FIGURES += ("surer_half_within_10", "calibration_error")
Record = dict[str, Any]
# Processing of a photo before rotation.
BEFORE: dict[str, Callable[[Image.Image], Image.Image]] = {
    "clean": lambda photo: photo,
    "corners": lambda photo: photo,
    "halved": lambda photo: photo.reduce(2),
    "deblocked": lambda photo: photo.filter(ImageFilter.GaussianBlur(1.5)),
    "inner": lambda photo: photo,
}


def turned_files(photos: Sequence[Path], folder: Path, seed: int, kind: str) -> np.ndarray:
    """Writes a rotated file for each photo and returns the angles, in the order of the names."""
    folder.mkdir(parents=True)
    corners = kind == "corners"
    numbers = draws("evaluation", seed, 0, (len(photos), 6))
    for index, (photo, row) in enumerate(zip(photos, numbers, strict=True)):
        picture = BEFORE[kind](ImageOps.exif_transpose(Image.open(photo)).convert("RGB"))
        grown = corners and row[1] < 1 / 3
        clear = grown and row[2] < 0.5
        fill = tuple(int(256 * value) for value in row[3:6]) if grown else (0, 0, 0)
        picture = picture.convert("RGBA") if clear else picture
        turned = picture.rotate(
            360 * row[0],
            Image.Resampling.BICUBIC,
            expand=grown or kind == "inner",
            fillcolor=(0, 0, 0, 0) if clear else fill,
        )
        if kind == "inner":
            turned = inner(turned, picture.size, 360 * row[0])
        name = folder / f"{index:06d}"
        if clear:
            turned.save(name.with_suffix(".webp"), quality=QUALITY)
        else:
            turned.save(name.with_suffix(".jpg"), quality=QUALITY)
    angles: np.ndarray = 360 * numbers[:, 0]
    return angles


def inner(turned: Image.Image, size: tuple[int, int], degrees: float) -> Image.Image:
    """The largest rectangle of the photo's shape, lying or standing, in the middle of it."""
    width, height = size
    if 45 < degrees % 180 < 135:  # a camera that was held the other way
        width, height = height, width
    cos, sin = (abs(part(math.radians(degrees))) for part in (math.cos, math.sin))
    across, down = width * cos + height * sin, width * sin + height * cos
    share = min(size[0] / across, size[1] / down)
    half = share * width / 2 - 1, share * height / 2 - 1
    middle = turned.width / 2, turned.height / 2
    return turned.crop(
        tuple(round(m + sign * h) for sign in (-1, 1) for m, h in zip(middle, half, strict=True))
    )


def command(verb: str, folder: Path, *options: str) -> list[Record]:
    """What the command prints for a folder, in the order of the names."""
    line = [sys.executable, "-m", "radialbeams", verb, str(folder), "--json", *options]
    run = subprocess.run(line, capture_output=True, text=True)
    if run.returncode > 1:
        raise SystemExit(run.stderr)
    lines = [json.loads(text) for text in run.stdout.splitlines()]
    return sorted(lines, key=lambda record: record["path"])


def away(degrees: np.ndarray) -> np.ndarray:
    return np.abs((degrees + 180) % 360 - 180)


def read_angles(folder: Path, angles: np.ndarray, model: str) -> tuple[Record, np.ndarray]:
    """The figures of `radialbeams angle` on these files, and the errors file by file."""
    records = command("angle", folder, "--model", model)
    if len(records) != len(angles) or any("error" in record for record in records):
        raise SystemExit(
            f"expected an angle for every file; got {[r for r in records if 'error' in r][:3]}"
        )
    errors = away(np.array([record["angle_ccw"] for record in records]) - angles)
    sure = np.array([record["confidence"] for record in records])
    surer = errors[np.argsort(-sure, kind="stable")[: len(errors) // 2]]
    radians = torch.deg2rad(torch.from_numpy(errors[None]))
    figures = summarise(radians, confidences=torch.from_numpy(sure[None])).to_dict()
    figures["surer_half_within_10"] = float((surer <= 10).mean())
    return {name: round(figures[name], 4) for name in FIGURES}, errors


def acted_on(folder: Path, angles: np.ndarray, model: str, out: Path) -> Record:
    """The effect of `radialbeams upright` with its defaults on these files."""
    records = command("upright", folder, "--model", model, "-o", str(out), "--dry-run")
    turned = np.array([record["action"] == "turned" for record in records])
    # Not the estimate: a picture may be turned by a quarter, or by the angle of its rectangle.
    applied = np.array([(record.get("applied") or {}).get("angle_ccw", 0.0) for record in records])
    remaining = away(angles + applied)
    worse = remaining > away(angles) + WORSE
    return {
        "n": len(records),
        "acted_on": round(float(turned.mean()), 4),
        "acted_on_within_5": round(float((remaining[turned] <= NEAR).mean()), 4)
        if turned.any()
        else None,
        "worse_than_it_came": round(float(worse.mean()), 4),
    }


def measure_photos(place: Path, model: str, *, limit: int | None = None, seed: int = 0) -> Record:
    """All figures for the photos in a folder; those of `clean` first."""
    photos = sorted(p for p in place.rglob("*") if p.suffix.lower() in ENDINGS)[:limit]
    report: Record = {"jpeg": QUALITY}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in BEFORE:
            angles = turned_files(photos, folder / kind, seed, kind)
            figures, errors = read_angles(folder / kind, angles, model)
            if kind == "corners":
                grown = draws("evaluation", seed, 0, (len(photos), 6))[:, 1] < 1 / 3
                figures["grown_within_10"] = round(float((errors[grown] <= 10).mean()), 4)
            report |= figures if kind == "clean" else {kind: figures}
        report["turned"] = acted_on(folder / "clean", angles, model, folder / "a")
        upright = folder / "upright"
        upright.mkdir()
        for number, photo in enumerate(photos):
            (upright / f"{number:06d}{photo.suffix}").symlink_to(photo.resolve())
        report["upright"] = acted_on(upright, np.zeros(len(photos)), model, folder / "b")
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--model", default=zoo.DEFAULT)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    report = {
        "model": arguments.model,
        **measure_photos(
            arguments.photos, arguments.model, limit=arguments.limit, seed=arguments.seed
        ),
    }
    print(json.dumps(report))
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
