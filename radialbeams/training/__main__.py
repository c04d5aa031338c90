"""`python -m radialbeams.training RECIPE.json --data DIR --out RUN`: a run from its recipe alone.

For machines that have torch but not the command line's packages; `radialbeams train` does more.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from radialbeams.nn.stored import read_object
from radialbeams.training.fit import Fit
from radialbeams.training.recipe import Recipe
from radialbeams.training.runs import read_images
from radialbeams.training.weights import pick_device


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m radialbeams.training")
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--data", type=Path, help="the folder that holds the data sets")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--devices", default="auto")
    parser.add_argument("--steps", type=int, help="instead of the recipe's")
    parser.add_argument("--start", type=Path, help="STEM of weights to begin with: RUN/model")
    parser.add_argument("--minutes", type=float, help="the schedule follows the clock")
    arguments = parser.parse_args(argv)
    values = read_object(arguments.recipe, "a recipe")
    recipe = Recipe.from_dict(values | ({"steps": arguments.steps} if arguments.steps else {}))
    images = read_images(recipe, "train", root=arguments.data)
    fit = Fit(
        recipe,
        images,
        arguments.out,
        device=pick_device(arguments.devices),
        minutes=arguments.minutes,
        start=arguments.start,
        log_every=200,
    )
    fit.run(lambda progress: print(json.dumps(asdict(progress)), flush=True))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
