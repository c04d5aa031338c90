"""A folder in which a tenth of the images is crooked: how many are found, and what they cost.

    python -m benchmarks.crooked_folder [--data coil100|lfw] [--images 720] [--steps 200]

Images of COIL-100's objects 81–100, or of LFW, are turned by random angles. Cross-fitting
searches for the crooked ones, starting from weights that never saw these images. Then networks are
trained on the upright folder, on the one with the tenth turned, and on the realigned one, and
measured on other upright images. Exits 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from radialbeams.cards import Evaluation
from radialbeams.training.data import ImageSet, load
from radialbeams.training.evaluate import evaluate, predict_with
from radialbeams.training.fit import Fit
from radialbeams.training.own.crooked import Crooked, judge, listed, realigned
from radialbeams.training.own.pixels import read
from radialbeams.training.own.scan import scan
from radialbeams.training.recipe import Recipe
from radialbeams.training.weights import load_model
from radialbeams.zoo import find

START = {"coil100": "ring.coil100-objects", "lfw": "ring"}
SHARE = 0.1
FOUND, MISTAKEN, WORSE = 0.8, 0.02, 1.2  # the bars
BATCH = 64
HELD_OUT, SEEDS = 800, 3  # a single image that is upside down moves the mean


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=sorted(START), default="coil100")
    parser.add_argument("--images", type=int, default=720, help="to train on")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--scratch", action="store_true", help="start from random weights")
    parser.add_argument("--only-find", action="store_true")
    parser.add_argument("--out", type=Path, help="save the judgements here, as .npz")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as place:
        figures = measure(arguments, Path(place))
    print(json.dumps(figures, indent=1))
    good = figures["found"] >= FOUND and figures["mistaken"] <= MISTAKEN
    return 0 if good and figures.get("realigned_to_clean", 0) <= WORSE else 1


def measure(arguments: argparse.Namespace, place: Path) -> dict[str, float]:
    started_from = find(START[arguments.data])
    stem, size = started_from.stem, started_from.card.parent_size
    clean, held_out = pictures(arguments.data, arguments.images, size)
    rng = np.random.default_rng(0)
    is_turned = rng.random(len(clean)) < SHARE
    angles = np.where(is_turned, rng.uniform(-180, 180, len(clean)), 0.0)
    recipe = planned(stem, arguments.steps, clean)
    start = None if arguments.scratch else stem
    write(clean, np.zeros(len(clean)), place / "clean")
    write(clean, angles, place / "crooked")
    folder = scan(place / "crooked")
    rows = [int(Path(image.path).stem) for image in folder.images]
    channels = recipe.model.channels
    images = read(folder, range(len(rows)), size, channels, place / "cache")
    device = torch.device("cpu")
    started = time.monotonic()
    judged = judge(
        recipe, images, place / "folds", device=device, folds=arguments.folds, start=start
    )
    result = score(listed(judged), np.array(rows), angles)
    result |= {"skipped": len(folder.skipped), "search_seconds": time.monotonic() - started}
    if arguments.out is not None:
        np.savez(arguments.out, angles=judged.angles, sure=judged.confidences, true=angles[rows])
    if arguments.only_find:
        return result
    better = realigned(folder, range(len(rows)), listed(judged))
    realigned_images = read(better, range(len(rows)), size, channels, place / "cache")
    upright = scan(place / "clean")
    clean_images = read(upright, range(len(upright.images)), size, channels, place / "cache")
    sets = {"clean": clean_images, "crooked": images, "realigned": realigned_images}
    for name, training_set in sets.items():
        fit = Fit(recipe, training_set, place / name, device=device, start=start)
        fit.run()
        result[f"{name}_degrees"] = error(fit, held_out).mean
    result["realigned_to_clean"] = result["realigned_degrees"] / result["clean_degrees"]
    return result


def pictures(data: str, count: int, size: int) -> tuple[ImageSet, ImageSet]:
    """Images to train on, and others of the same kind to measure on."""
    split_by = "object" if data == "coil100" else "default"
    everything = load(data, split="test", split_by=split_by, size=size)
    rows = np.random.default_rng(1).permutation(len(everything))
    return everything.select(rows[:count]), everything.select(rows[count:][:HELD_OUT])


def planned(stem: Path, steps: int, images: ImageSet) -> Recipe:
    """The recipe for a short training of the network that the run starts from."""
    model, card = load_model(stem)
    recipe = Recipe.of_card(card)
    return replace(
        recipe,
        data=images.name,
        split_by="default",
        repeats={},
        batch=BATCH,
        steps=steps,
        learning_rate=1e-3,
        average=0.98,
        parent_size=card.parent_size,
        model=model.config,
    )


def write(images: ImageSet, angles: np.ndarray, folder: Path) -> None:
    folder.mkdir()
    for number, (pixels, angle) in enumerate(zip(images.images, angles, strict=True)):
        picture = Image.fromarray(pixels.permute(1, 2, 0).numpy())
        turned(picture, float(angle)).save(folder / f"{number}.png")


def turned(picture: Image.Image, degrees: float) -> Image.Image:
    """The picture rotated and padded with its edge pixels, so that no plain corner shows it."""
    if not degrees:
        return picture
    room = picture.width // 2
    wide = np.pad(np.asarray(picture), ((room, room), (room, room), (0, 0)), mode="edge")
    whole = Image.fromarray(wide).rotate(degrees, Image.Resampling.BICUBIC)
    return whole.crop((room, room, room + picture.width, room + picture.height))


def score(crooked: tuple[Crooked, ...], rows: np.ndarray, angles: np.ndarray) -> dict[str, float]:
    """Shares of the crooked and the good images that are listed, and how exact the angles are."""
    true = angles[rows]
    is_listed = np.zeros(len(rows), dtype=bool)
    is_listed[[suspect.index for suspect in crooked]] = True
    off = [
        abs((suspect.angle - true[suspect.index] + 180) % 360 - 180)
        for suspect in crooked
        if true[suspect.index]
    ]
    return {
        "images": len(rows),
        "crooked": int((true != 0).sum()),
        "found": float(is_listed[true != 0].mean()),
        "mistaken": float(is_listed[true == 0].mean()),
        "median_error_of_found": float(np.median(off)) if off else float("nan"),
    }


def error(fit: Fit, held_out: ImageSet) -> Evaluation:
    return evaluate(partial(predict_with, fit.averaged()), held_out, fit.views, seeds=SEEDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
