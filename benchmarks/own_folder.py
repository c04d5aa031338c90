"""`radialbeams train FOLDER` on five folders, measured against its bars.

    python -m benchmarks.own_folder [ROW …] --work FOLDER [--data DIR] [--steps N] [--out FILE]

Rows:
  coil-scratch  COIL-100's objects 81–100, a fifth of the views held out, 5 minutes, from scratch
  coil-start    the same from ring.coil100-objects, which has not seen these objects
  lfw           LFW, 500 images of 200 people, people held out, 10 minutes, from general, which has
                not seen LFW
  one           30 pictures of one object, 3 minutes, from ring.coil100-objects
  discs         60 discs, which look the same at every angle, 1 minute, from scratch

The bars are for two quiet CPU cores. On a busy machine `--steps` replaces the minutes by the number
of steps that fit into them when it is quiet. Calibration is measured on images that it has not
seen: other people, other views of the object, and for COIL-100 crosswise. What `upright` does is
measured on files: the held-out faces as they are, and rotated by Pillow with filled corners.

Exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from radialbeams.canonicalizer import Canonicalizer
from radialbeams.stored import JsonDict
from radialbeams.training.data import ImageSet, load
from radialbeams.training.evaluate import evaluate, predict_with
from radialbeams.training.own import Run, Watch, fit_folder
from radialbeams.training.own.run import read_begun
from radialbeams.training.runs import card_views
from radialbeams.training.weights import load_model

NEAR, WORSE = 5.0, 1.0  # degrees: turned correctly; made worse
PEOPLE, FACES, OTHERS = 200, 500, 300
Bars = dict[str, tuple[str, float]]  # figure → (at most | at least, bar)
Figures = JsonDict


@dataclass(frozen=True)
class Row:
    """A folder, the minutes and the start of its training, and its bars."""

    minutes: float
    start: str
    make: Callable[[Path, Path | None], None]  # (folder, where the data sets are)
    bars: Bars
    beyond: Callable[[Run, Path], Figures] = lambda run, folder: {}


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--work", type=Path, required=True, help="create folders and runs here")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument(
        "--steps", type=int, help="train for this many steps instead of the minutes"
    )
    parser.add_argument("--out", type=Path, help="JSON file for the results")
    arguments = parser.parse_args(argv)
    if unknown := set(arguments.rows) - set(ROWS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; rows are {', '.join(ROWS)}")
    figures: dict[str, Figures] = {}
    for name in arguments.rows or ROWS:
        figures[name] = measure(name, ROWS[name], arguments.work, arguments.data, arguments.steps)
        print(json.dumps({name: figures[name]}), flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    missed = [line for name in figures for line in short_of(figures[name], ROWS[name].bars, name)]
    for line in missed:
        print(f"MISSED: {line}", file=sys.stderr)
    return 1 if missed else 0


def measure(name: str, row: Row, work: Path, data: Path | None, steps: int | None) -> Figures:
    folder, out = work / name, work / f"{name}-run"
    if not folder.exists():
        row.make(folder, data)
    shutil.rmtree(out, ignore_errors=True)
    started, cpu = time.monotonic(), time.process_time()
    run = fit_folder(
        folder,
        out,
        minutes=None if steps else row.minutes,
        steps=steps,
        start=row.start,
        watch=Watch(note=partial(print, file=sys.stderr, flush=True)),
    )
    seconds = time.monotonic() - started
    training = run.card.training
    return {
        "start": row.start,
        "minutes": None if steps else row.minutes,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "load": round(os.getloadavg()[0], 1),
        "steps": None if training is None else training.steps_done,
        "mean": run.evaluation.mean,
        "mean_high": run.evaluation.mean_high,
        "within_5": run.evaluation.within_5,
        "held_out": run.card.data and run.card.data.test_images,
        "calibration_error": max(
            value for key, value in run.card.calibrated.items() if key.startswith("expected_error")
        ),
        "upright_worse_crosswise": run.card.calibrated["expected_upright_worse"],
        "trust": list(run.card.trust),
        "over_time": 0.0 if steps else abs(seconds / (60 * row.minutes) - 1),
        **row.beyond(run, folder),
    }


def short_of(figures: Figures, bars: Bars, name: str) -> list[str]:
    def meets(figure: str, kind: str, bar: float) -> bool:
        value = float(figures[figure])
        return value <= bar if kind == "at most" else value >= bar

    return [
        f"{name}: {figure} is {figures[figure]}, and should be {kind} {bar}"
        for figure, (kind, bar) in bars.items()
        if not meets(figure, kind, bar)
    ]


# --- the folders ---


def make_coil(folder: Path, data: Path | None) -> None:
    images = load("coil100", root=data)
    for row, group in enumerate(images.groups):
        if int(group.removeprefix("obj")) > 80:
            _save(images, row, folder)


def make_one(folder: Path, data: Path | None) -> None:
    """30 views of object 81; the others, for calibration, lie next to the folder."""
    images = load("coil100", root=data)
    rows = [row for row, group in enumerate(images.groups) if group == "obj81"]
    random.Random(0).shuffle(rows)
    for number, row in enumerate(rows):
        _save(images, row, folder if number < 30 else _unseen(folder))


def make_lfw(folder: Path, data: Path | None) -> None:
    """200 people with 500 images; one image of 300 other people, for calibration, next to it."""
    images = load("lfw", root=data)
    people = sorted(set(images.groups))
    random.Random(0).shuffle(people)
    rows = {person: [] for person in people}
    for row, person in enumerate(images.groups):
        rows[person].append(row)
    first = [rows[person][0] for person in people[:PEOPLE]]
    more = [row for person in people[:PEOPLE] for row in rows[person][1:]]
    random.Random(1).shuffle(more)
    for row in first + more[: FACES - PEOPLE]:
        _save(images, row, folder / images.groups[row])
    for person in people[PEOPLE : PEOPLE + OTHERS]:
        _save(images, rows[person][0], _unseen(folder) / person)


def make_discs(folder: Path, data: Path | None) -> None:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number in range(60):
        picture = Image.new("RGB", (128, 128), tuple(rng.integers(0, 60, 3).tolist()))
        radius = int(rng.integers(25, 50))
        box = (64 - radius, 64 - radius, 63 + radius, 63 + radius)
        ImageDraw.Draw(picture).ellipse(box, fill=tuple(rng.integers(120, 255, 3).tolist()))
        noisy = np.asarray(picture).astype(int) + rng.integers(-4, 5, (128, 128, 3))
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(folder / f"{number}.png")


def _unseen(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-unseen")


def _save(images: ImageSet, row: int, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pixels = images.images[row].permute(1, 2, 0).numpy()
    Image.fromarray(pixels).save(folder / f"{images.keys[row]}-{row}.png")


# --- what is measured beyond the run's own figures ---


def on_unseen(run: Run, folder: Path) -> Figures:
    """Calibration on images that neither training nor calibration has seen."""
    images = load(_unseen(folder), split="all", size=run.card.parent_size)
    model, card = load_model(run.folder / "model")
    predict = partial(predict_with, model, **card.calibration._asdict())
    seeds = max(1, 600 // len(images))
    evaluation = evaluate(predict, images, card_views(card), seeds=seeds)
    return {"calibration_error": evaluation.calibration_error, "unseen_mean": evaluation.mean}


def on_faces(run: Run, folder: Path) -> Figures:
    return {**on_unseen(run, folder), **on_files(run, folder)}


def on_files(run: Run, folder: Path) -> Figures:
    """What `upright` does to held-out files, as they are and rotated."""
    begun = read_begun(run.folder)
    paths = [folder / name for name in begun.held_out] if begun else []
    canonicalizer = Canonicalizer(run.folder)
    rng = np.random.default_rng(0)
    worse, right, acted = [], [], []
    for path in paths:
        picture = Image.open(path).convert("RGB")
        worse.append(_left(canonicalizer, _saved(picture), 0.0)[0] > WORSE)
        degrees, fill = 360 * rng.random(), tuple(rng.integers(0, 256, 3).tolist())
        turned = picture.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=fill)
        left, was_turned = _left(canonicalizer, _saved(turned), degrees)
        acted.append(was_turned)
        right.append(was_turned and left <= NEAR)
    return {
        "files": len(paths),
        "upright_worse": round(float(np.mean(worse)), 4),
        "turned_acted_on": round(float(np.mean(acted)), 4),
        "turned_right": round(float(np.mean(right)), 4),
    }


def _saved(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def _left(canonicalizer: Canonicalizer, file: bytes, degrees: float) -> tuple[float, bool]:
    """Degrees that remain of a turn, and whether anything was undone."""
    applied = canonicalizer.predict(file).applied_degrees
    return abs((degrees - (applied or 0.0) + 180) % 360 - 180), applied is not None


def named_symmetric(run: Run, folder: Path) -> Figures:
    return {"named_symmetric": any("symmetric" in reason for reason in run.card.trust)}


CALIBRATED: Bars = {"calibration_error": ("at most", 0.05), "over_time": ("at most", 0.1)}
ROWS = {
    "coil-scratch": Row(5, "scratch", make_coil, {"mean": ("at most", 3.0), **CALIBRATED}),
    "coil-start": Row(
        5, "ring.coil100-objects", make_coil, {"mean": ("at most", 1.5), **CALIBRATED}
    ),
    "lfw": Row(
        10,
        "general",
        make_lfw,
        {
            "mean": ("at most", 6.0),
            "upright_worse": ("at most", 0.02),
            "turned_right": ("at least", 0.5),
            **CALIBRATED,
        },
        on_faces,
    ),
    "one": Row(
        3, "ring.coil100-objects", make_one, {"mean": ("at most", 5.0), **CALIBRATED}, on_unseen
    ),
    "discs": Row(1, "scratch", make_discs, {"named_symmetric": ("at least", 1)}, named_symmetric),
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
