"""Whether another score ranks photos better than the confidence, and how many views it needs.

    python studies/ranking.py NAME=PHOTOS … [--out results/ranking.json] [--keep FOLDER]

PHOTOS is a folder of upright photos that the model was not trained on. Each is rotated by a
uniformly random angle, saved as JPEG of quality 90 and viewed at all four quarter turns. Every
candidate gives each photo an angle and a score. The results are the share within 10° among the half
with the higher scores, for all photos and for two halves of them, the share within 10° of all, and
the mean number of views. A candidate should replace the default only if it wins on both halves.
"""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from radialbeams import Canonicalizer, zoo
from radialbeams.posterior import Answer, quarter_masses, read_posterior, read_posteriors
from radialbeams.reproduce.records import write_record
from radialbeams.training.views import draws

COMMAND = "python studies/ranking.py NAME=PHOTOS …"
QUALITY = 90
DEFAULT_CANDIDATE = "confidence, four views below 0.8"
BELOW = (0.8, 0.9, 0.95)  # confidences below which three more views are used; 0.8 is the default
TEMPERATURES = (0.8, 1.5, 2.0)  # instead of the card's
SPREADS = (2.0, 4.0)  # degrees, instead of the card's

Floats = NDArray[Any]


class Outputs(NamedTuple):
    """Logits and offsets (N, 4, bins) at the four quarter turns, and the true angles (N,)."""

    logits: Floats
    offsets: Floats
    degrees: Floats


class Ranking(NamedTuple):
    """The answers of a candidate: angles and scores, (N,) each, and the mean number of views."""

    angles: Floats
    scores: Floats
    views: float


def outputs(folder: Path, model: str, seed: int = 0) -> Outputs:
    """The model's outputs for the rotated files of all photos in a folder."""
    photos = sorted(
        path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".png", ".webp")
    )
    reader = Canonicalizer(model, threads=1, documents=False)
    degrees = 360 * draws("evaluation", seed, 0, (len(photos), 6))[:, 0]
    pairs = []
    for photo, angle in zip(photos, degrees, strict=True):
        with Image.open(photo) as image:
            picture = ImageOps.exif_transpose(image).convert("RGB")
        file = io.BytesIO()
        picture.rotate(angle, Image.Resampling.BICUBIC).save(file, "JPEG", quality=QUALITY)
        view = reader.view(file.getvalue())
        pairs.append(reader._run(np.stack([np.rot90(view, k, (-2, -1)) for k in range(4)])))
    logits, offsets = (np.stack(parts) for parts in zip(*pairs, strict=True))
    return Outputs(logits, offsets, degrees)


def candidates(
    model_outputs: Outputs, temperature: float, spread: float
) -> Iterator[tuple[str, Ranking]]:
    """The candidates by name: how they rank the photos, and with how many views."""
    logits, offsets, _ = model_outputs
    shifts = np.arange(4, dtype=np.float32) * np.float32(logits.shape[-1] / 4)
    one_view = read_posterior(logits[:, 0], offsets[:, 0], temperature, spread)
    four_views = read_posteriors(logits, offsets, shifts, temperature, spread)
    yield "confidence, one view", ranked(one_view, 1)
    for below in BELOW:
        unsure = [(answer.confidence or 0.0) < below for answer in one_view]
        mixed = [
            second if is_unsure else first
            for first, second, is_unsure in zip(one_view, four_views, unsure, strict=True)
        ]
        yield f"confidence, four views below {below}", ranked(mixed, 1 + 3 * float(np.mean(unsure)))
    yield "confidence, always four views", ranked(four_views, 4)
    for other in TEMPERATURES:
        hot = read_posterior(logits[:, 0], offsets[:, 0], other, spread)
        yield f"temperature {other}, one view", ranked(hot, 1)
    for other in SPREADS:
        wide = read_posterior(logits[:, 0], offsets[:, 0], temperature, other)
        yield f"spread {other}°, one view", ranked(wide, 1)
    yield "entropy, one view", ranked(one_view, 1, [-_entropy(answer) for answer in one_view])
    yield (
        "mass of the quarter, one view",
        ranked(one_view, 1, [_quarter(answer) for answer in one_view]),
    )
    agreement = np.stack(
        [_near(logits[:, k], offsets[:, k] - shifts[k], four_views, temperature) for k in range(4)]
    )
    yield "lowest of four views", ranked(four_views, 4, agreement.min(0))
    yield "geometric mean of four views", ranked(four_views, 4, np.log(agreement + 1e-9).mean(0))


def ranked(answers: list[Answer], views: float, scores: Any = None) -> Ranking:
    if scores is None:
        scores = [answer.confidence for answer in answers]
    angles = np.array([answer.angle_degrees for answer in answers])
    return Ranking(angles, np.array(scores, np.float64), views)


def _entropy(answer: Answer) -> float:
    mass = np.asarray(answer.posterior, np.float64)
    return float(-(mass * np.log(mass + 1e-12)).sum())


def _quarter(answer: Answer) -> float:
    mass = np.asarray(answer.posterior, np.float32)
    return float(quarter_masses(mass, answer.angle_degrees)[0])


def _near(logits: Floats, offsets: Floats, answers: list[Answer], temperature: float) -> Floats:
    """(N,): the mass of one view within 10° of the answers."""
    scaled = logits.astype(np.float64) / temperature
    mass = np.exp(scaled - scaled.max(-1, keepdims=True))
    mass /= mass.sum(-1, keepdims=True)
    angles = (np.arange(logits.shape[-1]) + offsets) * (360 / logits.shape[-1])
    centre = np.array([answer.angle_degrees for answer in answers])[:, None]
    near: Floats = (mass * (np.abs((angles - centre + 180) % 360 - 180) <= 10)).sum(1)
    return near


def figures(ranking: Ranking, degrees: Floats) -> dict[str, float]:
    right = np.abs((ranking.angles - degrees + 180) % 360 - 180) <= 10
    first = np.arange(len(degrees)) % 2 == 0
    return {
        "surer_half": harness.surer(right, ranking.scores),
        "first_half": harness.surer(right[first], ranking.scores[first]),
        "second_half": harness.surer(right[~first], ranking.scores[~first]),
        "within_10": round(float(right.mean()), 4),
        "views": round(ranking.views, 2),
    }


def cached_outputs(folder: Path, model: str, file: Path | None) -> Outputs:
    return harness.kept(file, Outputs, lambda: outputs(folder, model))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", nargs="+", metavar="NAME=PHOTOS")
    parser.add_argument("--model", default=zoo.DEFAULT)
    parser.add_argument("--keep", type=Path, help="folder for the outputs of the model")
    parser.add_argument("--out", type=Path, default=Path("results") / "ranking.json")
    arguments = parser.parse_args()
    calibration = zoo.find(arguments.model).card.calibration
    sets = {}
    for argument in arguments.photos:
        name, _, path = argument.partition("=")
        model_outputs = cached_outputs(
            Path(path), arguments.model, arguments.keep and arguments.keep / f"{name}.npz"
        )
        rows = {
            title: figures(ranking, model_outputs.degrees)
            for title, ranking in candidates(
                model_outputs, calibration.temperature, calibration.spread
            )
        }
        sets[name] = {"n": len(model_outputs.degrees), "rows": rows}
        print(json.dumps({name: sets[name]}), flush=True)
    record = {
        "command": COMMAND,
        "model": arguments.model,
        "shipped": DEFAULT_CANDIDATE,
        "sets": sets,
    }
    write_record(arguments.out, record, long=[])


if __name__ == "__main__":
    main()
