"""How much several views of a picture help, and what they cost.

    python benchmarks/refine.py --data DATA [--limit 500] [--out results/refine.json]

Held-out images of each model's own data are rotated by one random angle each and rendered as in
training. From each, 1, 2, 4 and 8 views are made, rotated further by fractions of the angle between
two beams, as `Canonicalizer(refine=k)` does. Errors in degrees; CPU milliseconds per picture on one
thread, from the decoded picture to the estimate, medians of one run.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from radialbeams import Canonicalizer
from radialbeams.stored import JsonDict
from radialbeams.training.data import ImageSet, load
from radialbeams.training.views import LeakfreeViews, draw_angles

# Each model, its data, and the split that was held out.
MODELS = {
    "ring.lfw": ("lfw", "default"),
    "ring.coil100": ("coil100", "default"),
    "ring.coil100-objects": ("coil100", "object"),
}
LOOKS = (1, 2, 4, 8)
BATCH = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=500)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for model, (data, split_by) in MODELS.items():
        images = load(
            data, root=arguments.data, split="test", split_by=split_by, limit=arguments.limit
        )
        for looks in LOOKS:
            rows.append({"model": model, "looks": looks, **measured(model, looks, images)})
            print(json.dumps(rows[-1]), flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def measured(model: str, looks: int, images: ImageSet) -> JsonDict:
    canonicalizer = Canonicalizer(model, threads=1, refine=looks)
    angles = draw_angles("evaluation", 0, 0, len(images.images))
    estimates: list[float] = []
    for start in range(0, len(angles), BATCH):
        part = slice(start, start + BATCH)
        views = rendered(canonicalizer, looks, images.images[part], angles[part])
        estimates += [answer.angle_degrees for answer in canonicalizer.answers_from_views(views)]
    away = (np.array(estimates) - np.degrees(angles.numpy()) + 180) % 360 - 180
    errors = np.abs(away)
    return {
        "n": len(errors),
        "mean": round(float(errors.mean()), 3),
        "median": round(float(np.median(errors)), 3),
        "p95": round(float(np.quantile(errors, 0.95)), 3),
        "flips": round(float((errors >= 150).mean()), 4),
        "milliseconds": round(milliseconds(canonicalizer, images), 2),
    }


def rendered(
    canonicalizer: Canonicalizer, looks: int, parents: torch.Tensor, angles: torch.Tensor
) -> np.ndarray:
    """(N, C, S, S), or (N, k, C, S, S): resampled once, directly from the upright parents."""
    network = canonicalizer.card.network
    views = LeakfreeViews(network.view_size)
    blurred = views.prepare(parents)
    step = 2 * math.pi / network.num_bins
    turned = [views.turn(blurred, angles + j / looks * step).numpy() for j in range(looks)]
    return turned[0] if looks == 1 else np.stack(turned, axis=1)


def milliseconds(canonicalizer: Canonicalizer, images: ImageSet, count: int = 25) -> float:
    pictures = [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in images.images[:count]]
    canonicalizer.answers(pictures[:1])
    times = []
    for picture in pictures:
        start = time.process_time()
        canonicalizer.answers([picture])
        times.append(time.process_time() - start)
    return statistics.median(times) * 1e3


if __name__ == "__main__":
    main()
