"""`python -m radialbeams.training RECIPE.json --data DIR --out RUN`: a run from its recipe alone.

For machines that have torch but not the command line's packages; `radialbeams train` does more.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from radialbeams.stored import read_object
from radialbeams.training.data import ImageSet, cache
from radialbeams.training.fit import Fit
from radialbeams.training.recipe import Recipe
from radialbeams.training.runs import read_images
from radialbeams.training.weights import load_model, pick_device, save_model

HELD_OUT = 1024  # images that are measured on again and again during a run


def main(argv: list[str]) -> int:
    asked = _parser().parse_args(argv)
    values = read_object(asked.recipe, "a recipe")
    recipe = Recipe.from_dict(_changed(values, asked.steps, asked.batch, asked.set))
    images = _images(recipe, asked.data, "train", asked.limit)
    held_out = _images(recipe, asked.data, "test", HELD_OUT) if asked.validate_every else None
    print(f"{len(images):,} images, {len(held_out) if held_out else 0:,} held out", flush=True)
    fit = Fit(
        recipe,
        images,
        asked.out,
        device=pick_device(asked.devices),
        minutes=asked.minutes,
        start=asked.start,
        compiled=asked.compile,
        tuned=asked.tune,
        fused=asked.fuse,
        held_out=held_out,
        validate_every=asked.validate_every,
        log_every=asked.log_every,
        save_seconds=asked.save_seconds,
    )
    fit.run(lambda progress: print(json.dumps(asdict(progress)), flush=True))
    if held_out is not None:
        print(json.dumps({"step": fit.at.step, **fit.validation()}), flush=True)
    if asked.half:
        model, card = load_model(asked.out / "model")
        save_model(asked.out / "half", model, card, half=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m radialbeams.training")
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--data", help="folder of the data sets, or cache:FOLDER of decoded images")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--devices", default="auto")
    parser.add_argument("--steps", type=int, help="instead of the recipe's")
    parser.add_argument("--batch", type=int, help="instead of the recipe's")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=JSON", help="another recipe field"
    )
    parser.add_argument(
        "--start", type=Path, help="STEM of weights to begin with (RUN/model), or an encoder's file"
    )
    parser.add_argument("--minutes", type=float, help="the schedule follows the clock")
    parser.add_argument("--compile", action="store_true", help="by torch.compile, before capture")
    parser.add_argument(
        "--fuse", action="store_true", help="norms and strided convolutions by Triton kernels"
    )
    parser.add_argument("--tune", action="store_true", help="cuDNN tries its algorithms first")
    parser.add_argument("--half", action="store_true", help="also RUN/half, rounded to 16 bits")
    parser.add_argument("--limit", type=int, help="use only so many of the images")
    parser.add_argument(
        "--validate-every", type=int, default=0, help="steps between two measurements"
    )
    parser.add_argument("--log-every", type=int, default=200)
    parser.add_argument("--save-seconds", type=float, default=60.0, help="between two checkpoints")
    return parser


def _changed(
    values: Mapping[str, Any], steps: int | None, batch: int | None, fields: list[str]
) -> dict[str, Any]:
    """The recipe's fields with those of the command line on top; `a.b=1` is field b of part a."""
    changed: dict[str, Any] = json.loads(json.dumps(values))
    changed |= {} if steps is None else {"steps": steps}
    changed |= {} if batch is None else {"batch": batch}
    for field in fields:
        name, _, text = field.partition("=")
        *parts, last = name.split(".")
        place = changed
        for part in parts:
            place = place.setdefault(part, {})
        place[last] = json.loads(text)
    return changed


def _images(recipe: Recipe, data: str | None, split: str, limit: int | None) -> ImageSet:
    if data is not None and data.startswith(cache.PREFIX):
        folder = Path(data.removeprefix(cache.PREFIX))
        return cache.read(folder, recipe.data, split=split, limit=limit)
    return read_images(recipe, split, root=None if data is None else Path(data), limit=limit)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
