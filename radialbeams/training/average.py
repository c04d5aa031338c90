"""`python -m radialbeams.training.average RUN POLISHED --share S --out NEW`: between two runs.

A run that began with the weights of another, and was trained on something else, is better there
and worse at what it left behind. On the line between the two there are networks that are nearly as
good as either at its own, and often better than both at the old.
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
    """The second, with `share` of its weights and the rest of the first's."""
    if first.config != second.config:
        raise ValueError("Expected two runs of one network; their configs differ.")
    if not 0 <= share <= 1:
        raise ValueError(f"The share of the second run lies between 0 and 1; got {share}.")
    before, after = first.state_dict(), second.state_dict()
    for name, value in after.items():
        if value.is_floating_point():
            value.copy_(before[name].lerp(value, share))
    return second


def average_runs(first: Path, second: Path, share: float, out: Path) -> Card:
    """Writes OUT/model.safetensors and its card, which is the second's and says what it is."""
    stem = out / "model"
    if stem.with_suffix(".json").exists():
        raise ValueError(f"{out} holds a run already. Name a new folder.")
    (old, old_card), (new, card) = (load_model(run) for run in (first, second))
    training = card.training or TrainingCard({})
    step = AveragedWith(origin_of(old_card), share)
    # The second may lie between two itself.
    training = replace(training, averaged=(*training.averaged, step))
    return save_model(stem, averaged(old, new, share), replace(card, training=training))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m radialbeams.training.average")
    parser.add_argument("first", type=Path, help="STEM of its weights: RUN/model")
    parser.add_argument("second", type=Path, help="STEM of the run that began with the first's")
    parser.add_argument("--share", type=float, required=True, help="of the second, 0 to 1")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(argv)
    average_runs(asked.first, asked.second, asked.share, asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
