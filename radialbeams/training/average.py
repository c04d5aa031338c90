"""Averages two runs.

    python -m radialbeams.training.average RUN/model TUNED/model --share S --out NEW

A fine-tuned model is better on its new data and worse on the old. Networks on the line between the
weights before and after fine-tuning are nearly as good as either on its own data, and often better
than both on the old.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from radialbeams.cards import AveragedWith, Card, TrainingCard
from radialbeams.nn.architectures import Network
from radialbeams.training.weights import load_model, origin_of, save_model


def averaged(first: Network, second: Network, share: float) -> Network:
    """The second network, with weights (1 − share) · first + share · second."""
    if first.config != second.config:
        raise ValueError(
            "Expected two runs of the same network; their configs differ. "
            "Average a run and one that was fine-tuned from it."
        )
    if not 0 <= share <= 1:
        raise ValueError(f"The share of the second run must be between 0 and 1; got {share}.")
    before, after = first.state_dict(), second.state_dict()
    for name, value in after.items():
        if value.is_floating_point():
            value.copy_(before[name].lerp(value, share))
    return second


def average_runs(first: Path, second: Path, share: float, out: Path) -> Card:
    """Writes OUT/model.safetensors with the second run's card, which records the average."""
    stem = out / "model"
    if stem.with_suffix(".json").exists():
        raise ValueError(f"{out} already contains a run. Choose a new folder.")
    (old, old_card), (new, card) = (load_model(run) for run in (first, second))
    training = card.training or TrainingCard({})
    step = AveragedWith(origin_of(old_card), share)
    # The second may be an average itself.
    training = replace(training, averaged=(*training.averaged, step))
    return save_model(stem, averaged(old, new, share), replace(card, training=training))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m radialbeams.training.average")
    parser.add_argument("first", type=Path, help="STEM of the weights: RUN/model")
    parser.add_argument("second", type=Path, help="STEM of the run that started from the first")
    parser.add_argument("--share", type=float, required=True, help="of the second, 0 to 1")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args(argv)
    average_runs(arguments.first, arguments.second, arguments.share, arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
