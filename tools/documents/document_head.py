"""`python tools/documents/document_head.py RUN MATERIAL PHOTOS OUT`: refits "is a document".

A logistic regression on the network's last features. The features do not change, and neither do the
scores of the turns. It must learn to reject the photos that the cheap rule accepts. These are
prepared as for the network: turned or not, and levelled by whatever lines they show.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import torch
from PIL import Image
from torch.nn import functional as F

from radialbeams.documents import gray_page, levelled
from radialbeams.images.levelling import measure_skew
from radialbeams.images.page import page_view
from radialbeams.nn.quarter import QuarterNetwork, standardized
from radialbeams.training.data.documents import Material, render
from radialbeams.training.quarter_export import load_quarter_network
from radialbeams.training.weights import sha256, write_card, write_tensors

SEED = 517  # of the renderings


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="document_head.py")
    parser.add_argument("run", type=Path)
    parser.add_argument("material", type=Path)
    parser.add_argument("photos", type=Path, help="a folder of *.jpg, none of them a test photo")
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=800, help="of pages and of photos")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args(argv)
    jobs = [
        (kind, arguments.run, folder, worker, arguments.workers, arguments.count)
        for worker in range(arguments.workers)
        for kind, folder in (("page", arguments.material), ("photo", arguments.photos))
    ]
    with multiprocessing.get_context("spawn").Pool(arguments.workers) as pool:
        parts = pool.map(features_of, jobs, chunksize=1)
    documents = np.concatenate([p for p, job in zip(parts, jobs, strict=True) if job[0] == "page"])
    photos = np.concatenate([p for p, job in zip(parts, jobs, strict=True) if job[0] == "photo"])
    weights, bias = logistic(photos, documents)
    for name, rows in (("documents", documents), ("photos", photos)):
        shares = [0.003, 0.01, 0.03, 0.5, 0.97, 0.99, 0.997]
        print(name, len(rows), np.round(np.quantile(rows @ weights + bias, shares), 2).tolist())
    save(arguments.run, arguments.out, weights, bias)
    return 0


def features_of(job: tuple[str, Path, Path, int, int, int]) -> np.ndarray:
    """(N, hidden): the features of one worker's share."""
    kind, run, folder, worker, workers, count = job
    torch.set_num_threads(1)
    network = load_quarter_network(run / "model")
    numbers = range(worker, count, workers)
    images = pages(folder, numbers) if kind == "page" else photos(folder, numbers)
    features = []
    for number, image in zip(numbers, images, strict=True):
        rng = Random(number)
        image = turned(image, rng)
        level = levelled(gray_page(image), measure_skew(image).skew_degrees)
        view = np.rot90(page_view(level, network.config.size), rng.randrange(4))
        features.append(hidden(network, torch.from_numpy(view.copy())[None, None].float() / 255))
    return np.concatenate(features)


def pages(folder: Path, numbers: range) -> Iterator[Image.Image]:
    """Consecutive pages with text; the numbers of other pages are skipped."""
    material, at = Material(folder), 10_000 * numbers.start
    for _ in numbers:
        while not (page := render(material, SEED, at)).has_text:
            at += 1
        at += 1
        yield Image.fromarray(page.pixels)


def photos(folder: Path, numbers: range) -> Iterator[Image.Image]:
    files = sorted(folder.glob("*.jpg"))
    for number in numbers:
        with Image.open(files[number % len(files)]) as file:
            yield file.convert("L")


def turned(image: Image.Image, rng: Random) -> Image.Image:
    """The image, unchanged or turned by any angle, on its own or an enlarged canvas."""
    canvas, fill = rng.choice(("not", "grown", "same")), rng.choice((0, 0, 255))
    if canvas == "not":
        return image
    angle = rng.uniform(0, 360)
    return image.rotate(angle, Image.Resampling.BICUBIC, expand=canvas == "grown", fillcolor=fill)


@torch.inference_mode()
def hidden(network: QuarterNetwork, views: torch.Tensor) -> np.ndarray:
    scorer = network.scorer
    pooled = scorer.pool(scorer.features(standardized(views)))
    return F.relu(scorer.head[0](pooled)).numpy()


def logistic(no: np.ndarray, yes: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights and bias of a regularized logistic regression, by Newton's method."""
    features = np.concatenate((no, yes)).astype(np.float64)
    scale = features.std(0) + 1e-6
    features = np.c_[features / scale, np.ones(len(features))]
    target = np.r_[np.zeros(len(no)), np.ones(len(yes))]
    weights = np.zeros(features.shape[1])
    for _ in range(40):
        chance = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
        gradient = features.T @ (chance - target) + 2.0 * weights
        hessian = (features * (chance * (1 - chance))[:, None]).T @ features + 2.0 * np.eye(
            len(weights)
        )
        weights -= np.linalg.solve(hessian, gradient)
    return weights[:-1] / scale, float(weights[-1])


def save(run: Path, out: Path, weights: np.ndarray, bias: float) -> None:
    network = load_quarter_network(run / "model")
    last = network.scorer.head[2]
    with torch.no_grad():
        last.weight[1] = torch.from_numpy(weights).float()
        last.bias[1] = bias
    out.mkdir(parents=True, exist_ok=True)
    path = out / "model.safetensors"
    write_tensors(path, network.state_dict(), {"format": "radialbeams"})
    card = json.loads((run / "model.json").read_text(encoding="utf-8"))
    card["training"]["document_head"] = "fitted anew on photos that the rule lets through"
    card["sha256"] = {"safetensors": sha256(path)}
    write_card(out / "model.json", card)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
