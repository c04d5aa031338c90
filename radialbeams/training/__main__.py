"""`python -m radialbeams.training RECIPE.json --data DIR --out RUN`: trains from a recipe file.

For machines that have torch but not the command line's packages. `radialbeams train` does more.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from radialbeams.stored import JsonDict, read_object
from radialbeams.training.data import ImageSet, cache
from radialbeams.training.fit import Fit
from radialbeams.training.recipe import Recipe, RecipeFields
from radialbeams.training.runs import read_images
from radialbeams.training.weights import load_model, pick_device, save_model

HELD_OUT = 1024  # images that every validation during a run uses


def main(argv: list[str]) -> int:
    arguments = _parser().parse_args(argv)
    values = read_object(arguments.recipe, "a recipe")
    recipe = Recipe.from_dict(_changed(values, arguments.steps, arguments.batch, arguments.set))
    images = _images(recipe, arguments.data, "train", arguments.limit)
    held_out = (
        _images(recipe, arguments.data, "test", HELD_OUT) if arguments.validate_every else None
    )
    print(f"{len(images):,} images, {len(held_out) if held_out else 0:,} held out", flush=True)
    fit = Fit(
        recipe,
        images,
        arguments.out,
        device=pick_device(arguments.devices),
        minutes=arguments.minutes,
        start=arguments.start,
        compiled=arguments.compile,
        tuned=arguments.tune,
        fused=arguments.fuse,
        held_out=held_out,
        validate_every=arguments.validate_every,
        log_every=arguments.log_every,
        save_seconds=arguments.save_seconds,
    )
    fit.run(lambda progress: print(json.dumps(asdict(progress)), flush=True))
    if held_out is not None:
        print(json.dumps({"step": fit.at.step, **fit.validation()}), flush=True)
    if arguments.half:
        model, card = load_model(arguments.out / "model")
        save_model(arguments.out / "half", model, card, half=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m radialbeams.training")
    parser.add_argument("recipe", type=Path)
    parser.add_argument(
        "--data", help="folder of the data sets, or cache:FOLDER with decoded images"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--devices", default="auto")
    parser.add_argument("--steps", type=int, help="default: the recipe's")
    parser.add_argument("--batch", type=int, help="default: the recipe's")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=JSON",
        help="replaces a field of the recipe",
    )
    parser.add_argument(
        "--start", type=Path, help="initial weights: STEM (RUN/model), or the file of an encoder"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        help="length of the run; the learning-rate schedule follows the clock",
    )
    parser.add_argument("--compile", action="store_true", help="use torch.compile")
    parser.add_argument(
        "--fuse", action="store_true", help="use Triton kernels for norms and strided convolutions"
    )
    parser.add_argument("--tune", action="store_true", help="let cuDNN time its algorithms first")
    parser.add_argument(
        "--half", action="store_true", help="also write RUN/half, rounded to 16 bits"
    )
    parser.add_argument("--limit", type=int, help="use at most this many images")
    parser.add_argument(
        "--validate-every", type=int, default=0, help="steps between validations; default: 0, none"
    )
    parser.add_argument("--log-every", type=int, default=200)
    parser.add_argument("--save-seconds", type=float, default=60.0, help="time between checkpoints")
    return parser


def _changed(
    values: RecipeFields, steps: int | None, batch: int | None, fields: list[str]
) -> JsonDict:
    """The recipe's fields, overridden by the command line's; `a.b=1` sets field b of part a."""
    changed: JsonDict = json.loads(json.dumps(values))
    changed |= {} if steps is None else {"steps": steps}
    changed |= {} if batch is None else {"batch": batch}
    for field in fields:
        name, _, text = field.partition("=")
        *parts, last = name.split(".")
        target = changed
        for part in parts:
            target = target.setdefault(part, {})
        target[last] = json.loads(text)
    return changed


def _images(recipe: Recipe, data: str | None, split: str, limit: int | None) -> ImageSet:
    if data is not None and data.startswith(cache.PREFIX):
        folder = Path(data.removeprefix(cache.PREFIX))
        return cache.read(folder, recipe.data, split=split, limit=limit)
    return read_images(recipe, split, root=None if data is None else Path(data), limit=limit)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
