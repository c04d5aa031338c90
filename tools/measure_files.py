"""Measures a model on files: rotated by another library, and read like a user's file.

    python tools/measure_files.py MODEL DATA [--data DIR] [--seeds 3]

Each held-out original is rotated at full size by Pillow (bicubic, on its own canvas, the corners
filled with a random colour), saved as JPEG q90, and read by `Canonicalizer` without torch. The
split is the one that the model was not trained on.
"""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from radialbeams.canonicalizer import Canonicalizer
from radialbeams.training.data import ImageSet, load
from radialbeams.training.evaluate import summarise
from radialbeams.training.views import draw_angles, draws

QUALITY = 90


def turned_file(pixels: np.ndarray, degrees: float, fill: tuple[int, int, int]) -> io.BytesIO:
    picture = Image.fromarray(pixels).rotate(degrees, Image.Resampling.BICUBIC, fillcolor=fill)
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=QUALITY)
    return buffer


def measure_files(model: str | Path, images: ImageSet, seeds: int) -> dict[str, Any]:
    canonicalizer = Canonicalizer(model, threads=1)
    errors = np.empty((seeds, len(images)))
    for seed in range(seeds):
        angles = np.degrees(draw_angles("evaluation", seed, 0, len(images)).numpy())
        fills = (draws("noise", seed, 0, (len(images), 3)) * 256).astype(int)
        files = [
            Image.open(turned_file(pixels.permute(1, 2, 0).numpy(), angle, tuple(fill)))
            for pixels, angle, fill in zip(images.images, angles, fills, strict=True)
        ]
        estimates = np.array([answer.angle_degrees for answer in canonicalizer.answers(files)])
        errors[seed] = np.abs((estimates - angles + 180) % 360 - 180)
    figures = summarise(torch.deg2rad(torch.from_numpy(errors))).to_dict()
    names = ("n", "mean", "median", "p95", "within_5", "within_10", "flips")
    return {"jpeg": QUALITY, "seeds": seeds, **{name: round(figures[name], 4) for name in names}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("name", metavar="data")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--split-by", default="default")
    arguments = parser.parse_args()
    images = load(arguments.name, root=arguments.data, split="test", split_by=arguments.split_by)
    print(json.dumps(measure_files(arguments.model, images, arguments.seeds)))


if __name__ == "__main__":
    main()
