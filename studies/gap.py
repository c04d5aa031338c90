"""The share of a classifier's lost accuracy that a model in front of it regains, on photos.

    python studies/gap.py [--models general ring] [--overlap results/overlap.json]

ImageNet samples at random angles, EfficientNet-Lite0 behind, as in `reproduce downstream`. A model
is measured without the samples that are near to one of its training photos (`studies/overlap.py`),
unless whoever looked at the pair found that it does not show the same picture.
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
TRAINED_ON = {"general": ("coco",)}  # names of `studies/overlap.py`; other models: any of them


def without(images: ImageSet, names: set[str]) -> ImageSet:
    return images.select([row for row, key in enumerate(images.keys) if key not in names])


def seen(place: Path, model: str) -> set[str]:
    """The tested photos that are among the training photos of a model, as far as is known."""
    if not place.is_file():
        return set()
    against = json.loads(place.read_text(encoding="utf-8"))["against"]
    sources = TRAINED_ON.get(model, tuple(against))
    near = [pair for name in sources if name in against for pair in against[name]["near"]]
    # NNNN_wnid_name; a pair that nobody has looked at counts.
    return {pair["photo"].split("_")[1] for pair in near if pair.get("same", True)}


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


def of_model(name: str, images: ImageSet) -> dict[str, Any]:
    """The figures of one model on its photos, rotated and upright."""
    device, count = torch.device("cpu"), len(images)
    front = Canonicalizer.from_pretrained(name, abstain="card", snap="none")
    classifier = load_classifier(DEFAULT, device)
    task: ClassificationTask = photos_of_imagenet(images, classifier, {name: finder(front, device)})

    def show(done: int) -> None:
        print(f"{name}: {done} of {count}", flush=True)

    angles = draw_angles("evaluation", 0, 0, count)
    turned = tally(task, torch.arange(count), angles, show=show)
    upright = tally(task, torch.arange(count), torch.zeros(count), show=show)
    return measured(turned, upright, name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--models", nargs="+", default=["general", "ring"])
    parser.add_argument("--overlap", type=Path, default=Path("results") / "overlap.json")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path, default=Path("results") / "gap.json")
    arguments = parser.parse_args()
    images = load("imagenet-samples", root=arguments.data, limit=arguments.limit)
    models = {}
    for name in arguments.models:
        kept = without(images, seen(arguments.overlap, name))
        left_out = len(images) - len(kept)
        models[name] = {"n": len(kept), "left_out": left_out, **of_model(name, kept)}
    record = {
        "command": "python studies/gap.py",
        "classifier": DEFAULT,
        "n": len(images),
        "models": models,
        "hardware": "cpu",
        "seeds": [0],
    }
    write_record(arguments.out, record, long=[])
    print(json.dumps(record))


if __name__ == "__main__":
    main()
