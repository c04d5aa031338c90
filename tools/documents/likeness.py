"""`python tools/documents/likeness.py MATERIAL PHOTOS`: fits the rule of images/likeness.py.

Rendered pages against photos, half of each turned by any angle on a plain canvas, as JPEG files.
Prints the constants, and which share of photos passes when a given share of pages does.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

from radialbeams.images.corners import without_corners
from radialbeams.images.likeness import likeness
from radialbeams.training.data.documents import Material, render


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="likeness.py")
    parser.add_argument("material", type=Path)
    parser.add_argument("photos", type=Path, help="a folder of *.jpg, none of them a test photo")
    parser.add_argument("--pages", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=77)
    arguments = parser.parse_args(argv)
    pages = np.array(page_features(Material(arguments.material), arguments.seed, arguments.pages))
    files = Random(arguments.seed).sample(
        sorted(arguments.photos.glob("*.jpg")), 2 * arguments.pages
    )
    photos = np.array(photo_features(files))
    weights, bias = fit(photos, pages)
    print("WEIGHTS =", tuple(round(float(w), 2) for w in weights), " BIAS =", round(bias, 2))
    for share in (0.95, 0.98, 0.985, 0.99, 0.995):
        least = float(np.quantile(pages @ weights + bias, 1 - share))
        passing = float((photos @ weights + bias >= least).mean())
        print(f"LEAST = {least:.2f}: {share:.1%} of pages, {passing:.1%} of photos")
    return 0


def features_of(image: Image.Image, number: int) -> np.ndarray:
    """The features of the picture saved as a file; it is turned if the number is even."""
    file = io.BytesIO()
    turned(image, number).save(file, "JPEG", quality=90)
    return likeness(without_corners(Image.open(file).convert("RGB")))


def turned(image: Image.Image, number: int) -> Image.Image:
    if number % 2:
        return image
    rng = Random(number)
    fill = rng.choice(("black", "black", "white"))
    angle = rng.uniform(0, 360)
    return image.rotate(angle, Image.Resampling.BICUBIC, expand=True, fillcolor=fill)


def photo_features(files: list[Path]) -> list[np.ndarray]:
    features = []
    for number, path in enumerate(files):
        with Image.open(path) as file:
            features.append(features_of(enlarged(file.convert("RGB"), number), number))
    return features


def enlarged(photo: Image.Image, number: int) -> Image.Image:
    """The photo in one of several sizes: the traces of its own JPEG blocks depend on the size."""
    width = (0, 640, 480, 800)[number // 2 % 4]
    if not width:
        return photo
    shape = Random(number).choice((0.75, 0.75, 1.33, 0.67, 1.5))  # height over width
    size = (width, round(width * shape)) if shape < 1 else (round(width / shape), width)
    return photo.resize(size, Image.Resampling.BICUBIC)


def page_features(material: Material, seed: int, count: int) -> list[np.ndarray]:
    pages = (render(material, seed, number) for number in range(count))
    texts = (Image.fromarray(page.pixels).convert("RGB") for page in pages if page.has_text)
    return [features_of(image, number) for number, image in enumerate(texts)]


def fit(photos: np.ndarray, pages: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights and bias of a lightly regularized logistic regression, by Newton's method."""
    features = np.concatenate((photos, pages))
    mean, spread = features.mean(0), features.std(0)
    inputs = np.c_[(features - mean) / spread, np.ones(len(features))]
    target = np.r_[np.zeros(len(photos)), np.ones(len(pages))]
    solution = np.zeros(inputs.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-inputs @ solution))
        gradient = inputs.T @ (chance - target) + 0.1 * solution
        hessian = (inputs * (chance * (1 - chance))[:, None]).T @ inputs + 0.1 * np.eye(
            len(solution)
        )
        solution -= np.linalg.solve(hessian, gradient)
    weights = solution[:-1] / spread
    return weights, float(solution[-1] - mean @ weights)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
