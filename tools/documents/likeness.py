"""`python tools/documents/likeness.py MATERIAL PHOTOS`: fits the rule of images/likeness.py.

Rendered pages against photos, half of each turned by any angle on a plain canvas. Prints the
constants, and which share of photos passes when a given share of pages does.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

from radialbeams.images.likeness import likeness
from radialbeams.training.data.documents import Material, render


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="likeness.py")
    parser.add_argument("material", type=Path)
    parser.add_argument("photos", type=Path, help="a folder of *.jpg, none of them a test photo")
    parser.add_argument("--pages", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=77)
    asked = parser.parse_args(argv)
    pages = np.array(page_features(Material(asked.material), asked.seed, asked.pages))
    files = Random(asked.seed).sample(sorted(asked.photos.glob("*.jpg")), asked.pages)
    photos = np.array([likeness(turned(opened(path), k)) for k, path in enumerate(files)])
    weights, bias = fit(photos, pages)
    print("WEIGHTS =", tuple(round(float(w), 2) for w in weights), " BIAS =", round(bias, 2))
    for share in (0.95, 0.98, 0.985, 0.99, 0.995):
        least = float(np.quantile(pages @ weights + bias, 1 - share))
        passing = float((photos @ weights + bias >= least).mean())
        print(f"LEAST = {least:.2f}: {share:.1%} of pages, {passing:.1%} of photos")
    return 0


def opened(path: Path) -> Image.Image:
    with Image.open(path) as file:
        return file.convert("L")


def turned(image: Image.Image, number: int) -> Image.Image:
    if number % 2:
        return image
    rng = Random(number)
    fill = rng.choice((0, 0, 255))
    angle = rng.uniform(0, 360)
    return image.rotate(angle, Image.Resampling.BICUBIC, expand=True, fillcolor=fill)


def page_features(material: Material, seed: int, count: int) -> list[np.ndarray]:
    pages = (render(material, seed, number) for number in range(count))
    texts = (Image.fromarray(page.pixels) for page in pages if page.has_text)
    return [likeness(turned(image, k)) for k, image in enumerate(texts)]


def fit(photos: np.ndarray, pages: np.ndarray) -> tuple[np.ndarray, float]:
    """Logistic regression by Newton's method, a little regularized."""
    features = np.concatenate((photos, pages))
    mean, spread = features.mean(0), features.std(0)
    given = np.c_[(features - mean) / spread, np.ones(len(features))]
    target = np.r_[np.zeros(len(photos)), np.ones(len(pages))]
    found = np.zeros(given.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-given @ found))
        slope = given.T @ (chance - target) + 0.1 * found
        bend = (given * (chance * (1 - chance))[:, None]).T @ given + 0.1 * np.eye(len(found))
        found -= np.linalg.solve(bend, slope)
    weights = found[:-1] / spread
    return weights, float(found[-1] - mean @ weights)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
