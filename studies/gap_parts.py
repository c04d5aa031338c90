"""Where the accuracy goes that a model in front of a classifier does not regain, and what may help.

    python studies/gap_parts.py [--model general] [--keep FOLDER] [--out results/gap-parts.json]

The photos, angles and classifier of `studies/gap.py`, and four ways of taking an angle from the
same posteriors: the most probable one of one view; that of four views at quarter turns; the angle
with the highest expected accuracy, given how much each error costs the classifier; and, as an upper
bound, that of four views with the right quarter turn. Nothing is trained.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from radialbeams import zoo
from radialbeams.front.accuracy import BATCH, ClassificationTask, turned_back
from radialbeams.front.classifiers import DEFAULT, load_classifier
from radialbeams.front.module import Canonicalizer
from radialbeams.posterior import Calibration, read_posterior, read_posteriors
from radialbeams.reproduce.downstream_sets import photos_of_imagenet
from radialbeams.reproduce.records import write_record
from radialbeams.training.data import load
from radialbeams.training.views import draw_angles

GRID = np.arange(0.0, 360.0, 2.0)  # angles among which the expected accuracy is compared
STEP = 20.0  # degrees between the angles of CURVE
CURVE = Path("results") / "downstream.json"  # accuracy over the angle of the same photos

Array = NDArray[Any]


def accuracy_over_error(place: Path = CURVE) -> tuple[Array, Array]:
    """Errors in degrees, 0 to 180 in steps of 20, and the accuracy of the classifier at each.

    The mean of both directions: with a few hundred photos one side alone need not peak at 0°.
    """
    record = json.loads(place.read_text(encoding="utf-8"))["data"]["sets"]["imagenet"]
    angles, plain = np.array(record["angles"], float), np.array(record["lines"]["plain"], float)
    steps = np.round(np.abs((angles + 180) % 360 - 180) / STEP)
    errors = np.unique(steps)
    return errors * STEP, np.array([plain[steps == error].mean() for error in errors])


def estimates(
    logits: Array, offsets: Array, degrees: Array, calibration: Calibration
) -> dict[str, Array]:
    """The angles (N,) that each way takes from the outputs (N, 4, bins) at four quarter turns."""
    shifts = np.arange(4, dtype=np.float32) * np.float32(logits.shape[-1] / 4)
    one = read_posterior(logits[:, 0], offsets[:, 0], *calibration)
    four = read_posteriors(logits, offsets, shifts, *calibration)
    best = np.array([answer.angle_degrees for answer in four])
    away = (best - degrees + 180) % 360 - 180
    return {
        "one view": np.array([answer.angle_degrees for answer in one]),
        "four views": best,
        "four views, highest expected accuracy": expected_best(logits, offsets, calibration),
        "four views, right quarter given": best - 90 * np.round(away / 90),
    }


def expected_best(logits: Array, offsets: Array, calibration: Calibration) -> Array:
    """(N,): of GRID, the angle with the highest expected accuracy of the classifier."""
    bins = logits.shape[-1]
    scaled = logits.astype(np.float64) / calibration.temperature
    mass = np.exp(scaled - scaled.max(-1, keepdims=True))
    mass /= mass.sum(-1, keepdims=True)
    quarters = np.arange(4)[:, None] * (bins / 4)
    angles = (np.arange(bins) + offsets - quarters) * (360 / bins)
    errors, accuracies = accuracy_over_error()
    scores = [
        (mass * np.interp(np.abs((angles - angle + 180) % 360 - 180), errors, accuracies)).sum(
            (1, 2)
        )
        for angle in GRID
    ]
    best: Array = GRID[np.argmax(scores, axis=0)]
    return best


@torch.inference_mode()
def outputs(task: ClassificationTask, model: str, degrees: Array) -> dict[str, Array]:
    """Logits and offsets (N, 4, bins), and the classes found without a turn and at the true one."""
    front = Canonicalizer.from_pretrained(model, abstain=None, snap="none")
    parts: list[list[Array]] = []
    for rows in torch.split(torch.arange(len(degrees)), BATCH):
        angles = torch.deg2rad(torch.from_numpy(degrees)[rows]).float()
        images = task.turned(rows, angles)
        views = front.view_geometry(images)
        seen = [front.network(torch.rot90(views, k, (-2, -1))) for k in range(4)]
        logits, offsets = (torch.stack(part, 1).numpy() for part in zip(*seen, strict=True))
        plain = task.classify(task.shown(images)).argmax(-1).numpy()
        back = turned_back(images, angles, task.fill)
        parts.append([logits, offsets, plain, task.classify(task.shown(back)).argmax(-1).numpy()])
    names = ("logits", "offsets", "plain", "ceiling")
    joined = [np.concatenate(part) for part in zip(*parts, strict=True)]
    return dict(zip(names, joined, strict=True))


@torch.inference_mode()
def classified(task: ClassificationTask, degrees: Array, angles: Array) -> Array:
    """(N,): the classes found after the photos were turned back by these angles."""
    classes = []
    for rows in torch.split(torch.arange(len(degrees)), BATCH):
        truth, turn = (torch.deg2rad(torch.from_numpy(x)[rows]).float() for x in (degrees, angles))
        back = turned_back(task.turned(rows, truth), turn, task.fill)
        classes.append(task.classify(task.shown(back)).argmax(-1).numpy())
    return np.concatenate(classes)


def figures(right: Array, plain: Array, ceiling: Array, errors: Array) -> dict[str, float]:
    """The share of the gap for all photos and for two halves, and the errors in the angle."""
    first = np.arange(len(right)) % 2 == 0
    parts = {"share": first | True, "first_half": first, "second_half": ~first}
    shares = {
        name: (right[part].mean() - plain[part].mean())
        / (ceiling[part].mean() - plain[part].mean())
        for name, part in parts.items()
    }
    within = {f"within_{limit}": (errors <= limit).mean() for limit in (10, 45)}
    values = {"accuracy": right.mean(), **shares, **within}
    return {name: round(float(value), 4) for name, value in values.items()}


def kept(folder: Path | None, name: str, make: Any) -> dict[str, Array]:
    """Arrays from an earlier run, or made now."""
    place = folder and folder / f"{name}.npz"
    if place and place.is_file():
        with np.load(place) as stored:
            return dict(stored)
    made: dict[str, Array] = make()
    if place:
        place.parent.mkdir(parents=True, exist_ok=True)
        np.savez(place, **made)  # type: ignore[arg-type]
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model", default=zoo.DEFAULT)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--keep", type=Path, help="folder for outputs and classes")
    parser.add_argument("--out", type=Path, default=Path("results") / "gap-parts.json")
    asked = parser.parse_args()
    images = load("imagenet-samples", root=asked.data, limit=asked.limit)
    task = photos_of_imagenet(images, load_classifier(DEFAULT, torch.device("cpu")), {})
    degrees = np.degrees(draw_angles("evaluation", 0, 0, len(images)).numpy())
    made = kept(asked.keep, "outputs", lambda: outputs(task, asked.model, degrees))
    calibration = zoo.find(asked.model).card.calibration
    labels, rows = task.labels.numpy(), {}
    for name, angles in estimates(made["logits"], made["offsets"], degrees, calibration).items():
        cached = kept(
            asked.keep, name, lambda turn=angles: {"classes": classified(task, degrees, turn)}
        )
        errors = np.abs((angles - degrees + 180) % 360 - 180)
        plain, ceiling = made["plain"] == labels, made["ceiling"] == labels
        rows[name] = figures(cached["classes"] == labels, plain, ceiling, errors)
        print(json.dumps({name: rows[name]}), flush=True)
    record = {
        "command": "python studies/gap_parts.py",
        "model": asked.model,
        "classifier": DEFAULT,
        "n": len(images),
        "rows": rows,
    }
    write_record(asked.out, record, long=[])


if __name__ == "__main__":
    main()
