"""The share of a classifier's lost accuracy that a model in front of it regains, on photos.

    python studies/gap.py [--models general ring] [--overlap results/overlap.json]

ImageNet samples at random angles, EfficientNet-Lite0 behind, as in `reproduce downstream`. The
model turns every sample, or abstains by its card, or the classifier is averaged over the likely
quarter turns (`PosteriorAverage`). Six even rotations, averaged, need no model. A model is measured
without the samples that are near to one of its training photos (`studies/overlap.py`), unless
whoever looked at the pair found that it does not show the same picture.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from radialbeams.front.accuracy import (
    BATCH,
    TURNS,
    ClassificationTask,
    Tally,
    finder,
    share_of_the_gap,
    tally,
)
from radialbeams.front.averaging import PosteriorAverage
from radialbeams.front.classifiers import DEFAULT, load_classifier
from radialbeams.front.module import Canonicalizer, TorchCanonicalizer
from radialbeams.reproduce.downstream_sets import GREY, photos_of_imagenet
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


@dataclass(frozen=True)
class LikelyTurns:
    """What the classifier finds when it is averaged over the likely quarter turns."""

    predicted: Tensor  # (N,)
    runs: float  # of the classifier, for each photo


def measured(
    rotated: Tally, upright: Tally, model: str, likely: LikelyTurns, likely_upright: LikelyTurns
) -> dict[str, Any]:
    """The accuracy of each way to use the model, its share of the gap, and its harm to upright."""
    rows = {"plain": rotated.predicted["plain"], "ceiling": rotated.predicted["ceiling"]}
    rows["six_rotations"] = rotated.predicted["averaged"]
    rows["always"] = rotated.predicted[model]
    applied = rotated.estimates[model].applied
    rows["decides"] = torch.where(applied, rotated.predicted[model], rotated.predicted["plain"])
    rows["likely_turns"] = likely.predicted
    right = {name: (part == rotated.labels).double() for name, part in rows.items()}
    accuracy = {name: part.mean().item() for name, part in right.items()}
    shares = {
        name: {
            "share": float(f"{share_of_the_gap(accuracy, name) or math.nan:.4f}"),
            "interval": interval(right, name),
        }
        for name in rows
        if name not in ("plain", "ceiling")
    }
    return {
        "accuracy": {name: float(f"{value:.4f}") for name, value in accuracy.items()},
        "share_of_the_gap": shares,
        "runs_of_the_classifier": {"six_rotations": TURNS, "likely_turns": round(likely.runs, 2)},
        "errors": {k: float(f"{v:.4f}") for k, v in rotated.errors()[model].items()},
        "upright": when_upright(upright, model, likely_upright),
    }


def when_upright(upright: Tally, model: str, likely: LikelyTurns) -> dict[str, Any]:
    """The accuracies for upright photos, and the shares that only the plain classifier gets right.

    Averaging over likely turns may also find what the plain classifier does not: `gained`.
    """
    plain = upright.predicted["plain"] == upright.labels
    applied = upright.estimates[model].applied
    decides = torch.where(applied, upright.predicted[model], upright.predicted["plain"])
    right = {
        "decides": decides == upright.labels,
        "likely_turns": likely.predicted == upright.labels,
    }
    shares = {
        name: {"accuracy": now, "lost": plain & ~now, "gained": ~plain & now}
        for name, now in right.items()
    }
    return {
        "plain": round(plain.double().mean().item(), 4),
        **{
            name: {key: round(part.double().mean().item(), 4) for key, part in parts.items()}
            for name, parts in shares.items()
        },
        "runs_of_the_classifier": round(likely.runs, 2),
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


@torch.inference_mode()
def likely_turns(
    task: ClassificationTask,
    front: TorchCanonicalizer,
    angles: Tensor,
    show: Callable[[int], object] = lambda done: None,
) -> LikelyTurns:
    """The classifier averaged over the likely quarter turns of every photo."""
    predicted, runs = [], []

    def classify(images: Tensor) -> Tensor:
        runs.append(len(images))
        return task.classify(task.shown(images))

    model = PosteriorAverage(front, classify)
    for rows in torch.split(torch.arange(len(angles)), BATCH):
        predicted.append(model(task.turned(rows, angles[rows])).argmax(-1))
        show(int(rows[-1]) + 1)
    return LikelyTurns(torch.cat(predicted), sum(runs) / len(angles))


def of_model(name: str, images: ImageSet) -> dict[str, Any]:
    """The figures of one model on its photos, rotated and upright."""
    device, count = torch.device("cpu"), len(images)
    classifier = load_classifier(DEFAULT, device)
    front = Canonicalizer.from_pretrained(name, abstain="card", snap="none", fill=GREY)
    task: ClassificationTask = photos_of_imagenet(images, classifier, {name: finder(front, device)})

    def show(done: int) -> None:
        print(f"{name}: {done} of {count}", flush=True)

    angles, none = draw_angles("evaluation", 0, 0, count), torch.zeros(count)
    turned = tally(task, torch.arange(count), angles, averaged=True, show=show)
    upright = tally(task, torch.arange(count), none, show=show)
    averages = (likely_turns(task, front, turn, show) for turn in (angles, none))
    return measured(turned, upright, name, *averages)


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
