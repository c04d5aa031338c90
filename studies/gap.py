"""The share of a classifier's lost accuracy that a model in front of it regains, on photos.

    python studies/gap.py [--models general ring] [--overlap results/overlap.json]

ImageNet samples at random angles, EfficientNet-Lite0 behind, as in `reproduce downstream`. Samples
that are near to a photo of the training data (`studies/overlap.py`) are left out, unless whoever
looked at the pairs found that none shows the same picture.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from radialbeams.front.accuracy import ClassificationTask, Tally, finder, share_of_the_gap, tally
from radialbeams.front.classifiers import DEFAULT, load_classifier
from radialbeams.front.module import Canonicalizer
from radialbeams.reproduce.downstream_sets import photos_of_imagenet
from radialbeams.reproduce.records import write_record
from radialbeams.training.data import ImageSet, load
from radialbeams.training.views import draw_angles

REPETITIONS = 2000  # of the bootstrap


def without(images: ImageSet, names: set[str]) -> ImageSet:
    return images.select([row for row, key in enumerate(images.keys) if key not in names])


def alike(place: Path) -> set[str]:
    """The tested photos that may be among the training data."""
    if not place.is_file():
        return set()
    overlap = json.loads(place.read_text(encoding="utf-8"))
    if overlap["same_by_eye"] == 0:
        return set()
    near = [pair["photo"] for one in overlap["against"].values() for pair in one["near"]]
    return {name.split("_")[1] for name in near}  # NNNN_wnid_name


def measured(rotated: Tally, upright: Tally, model: str) -> dict[str, Any]:
    """Accuracies with the model always acting and with its abstention, and intervals."""
    rows = {"plain": rotated.predicted["plain"], "ceiling": rotated.predicted["ceiling"]}
    rows["always"] = rotated.predicted[model]
    applied = rotated.estimates[model].applied
    rows["decides"] = torch.where(applied, rotated.predicted[model], rotated.predicted["plain"])
    right = {name: (part == rotated.labels).double() for name, part in rows.items()}
    accuracy = {name: part.mean().item() for name, part in right.items()}
    shares = {
        name: {
            "share": float(f"{share_of_the_gap(accuracy, name) or math.nan:.4f}"),
            "interval": interval(right, name),
        }
        for name in ("always", "decides")
    }
    acted = upright.estimates[model].applied
    kept = torch.where(acted, upright.predicted[model], upright.predicted["plain"])
    was, now = upright.predicted["plain"] == upright.labels, kept == upright.labels
    return {
        "accuracy": {name: float(f"{value:.4f}") for name, value in accuracy.items()},
        "share_of_the_gap": shares,
        "errors": {k: float(f"{v:.4f}") for k, v in rotated.errors()[model].items()},
        "upright": {
            "plain": was.double().mean().item(),
            "decides": now.double().mean().item(),
            "lost": (was & ~now).double().mean().item(),
        },
    }


def interval(right: dict[str, Tensor], name: str) -> list[float]:
    """Of the share of the gap, 95%, over photos that are drawn again."""
    generator = np.random.default_rng(0)
    count = len(right["plain"])
    rows = generator.integers(count, size=(REPETITIONS, count))
    plain, best, ours = (right[key].numpy()[rows].mean(1) for key in ("plain", "ceiling", name))
    lost = best > plain  # in a few photos nothing may be lost
    shares = (ours - plain)[lost] / (best - plain)[lost]
    low, high = np.quantile(shares, (0.025, 0.975))
    return [float(f"{low:.3f}"), float(f"{high:.3f}")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--models", nargs="+", default=["general", "ring"])
    parser.add_argument("--overlap", type=Path, default=Path("results") / "overlap.json")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path, default=Path("results") / "gap.json")
    arguments = parser.parse_args()
    device = torch.device("cpu")
    images = load("imagenet-samples", root=arguments.data, limit=arguments.limit)
    left_out = alike(arguments.overlap)
    kept = without(images, left_out)
    fronts = {
        name: finder(Canonicalizer.from_pretrained(name, abstain="card", snap="none"), device)
        for name in arguments.models
    }
    task: ClassificationTask = photos_of_imagenet(kept, load_classifier(DEFAULT, device), fronts)
    count = len(kept)

    def show(done: int) -> None:
        print(f"{done} of {count}", flush=True)

    turned = tally(task, torch.arange(count), draw_angles("evaluation", 0, 0, count), show=show)
    upright = tally(task, torch.arange(count), torch.zeros(count), show=show)
    record = {
        "command": "python studies/gap.py",
        "classifier": DEFAULT,
        "n": count,
        "left_out": len(images) - count,
        "models": {name: measured(turned, upright, name) for name in fronts},
        "hardware": "cpu",
        "seeds": [0],
    }
    write_record(arguments.out, record, long=[])
    print(json.dumps(record))


if __name__ == "__main__":
    main()
