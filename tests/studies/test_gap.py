"""The share of the gap that a model regains: which photos count, and how sure the share is."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import torch
from conftest import ROOT
from torch import Tensor, nn

from radialbeams.front.accuracy import AngleEstimates, ClassificationTask, Tally
from radialbeams.front.module import TorchCanonicalizer
from radialbeams.nn.ring_network import RingConfig
from radialbeams.reproduce.downstream_sets import SEEN_BY_RING

sys.path.insert(0, str(ROOT / "studies"))
gap = importlib.import_module("gap")


def test_a_model_is_measured_without_its_own_training_photos(tmp_path: Path) -> None:
    place = tmp_path / "overlap.json"

    def pair(photo: str, **decided: bool) -> dict[str, object]:
        return {"photo": photo, "like": "x", "bits": 9, **decided}

    coco = [pair("0075_n01774384_widow", same=False), pair("0001_n01443537_fish")]
    dogs = [pair("0228_n02105505_komondor", same=True)]
    found = {"against": {"coco": {"near": coco}, "dogs": {"near": dogs}}}
    place.write_text(json.dumps(found), encoding="utf-8")
    assert gap.seen(place, "general") == {"n01443537"}, "nobody has looked at that pair"
    assert gap.seen(place, "ring") == {"n01443537", "n02105505"}
    assert gap.seen(tmp_path / "none", "ring") == set()


def test_the_stored_comparison_can_be_read() -> None:
    place = ROOT / "results" / "overlap.json"
    assert gap.seen(place, "general") == set()
    assert gap.seen(place, "ring") == set(SEEN_BY_RING)


def tallied(right: dict[str, list[int]], applied: list[bool]) -> Tally:
    count = len(applied)
    return Tally(
        torch.ones(count),
        torch.zeros(count),
        torch.zeros(count, 2),
        {name: torch.tensor(values) for name, values in right.items()},
        {"m": AngleEstimates(torch.zeros(count), torch.tensor(applied))},
        {},
    )


def test_shares_count_what_a_model_regains_in_each_way_to_use_it() -> None:
    right = {"plain": [1, 1, 0, 0, 0, 0], "m": [0, 1, 1, 1, 1, 0], "ceiling": [1] * 6}
    rotated = tallied(
        {**right, "averaged": [1] * 3 + [0] * 3}, [False, True, True, False, False, True]
    )
    upright = tallied({**right, "plain": [1, 1, 1, 1, 1, 0]}, [True] + [False] * 5)
    likely = gap.LikelyTurns(torch.tensor([1, 1, 1, 1, 1, 0]), 1.5)
    likely_upright = gap.LikelyTurns(torch.tensor([1, 0, 1, 1, 1, 1]), 1.25)
    one = gap.measured(rotated, upright, "m", likely, likely_upright)
    shares = {way: row["share"] for way, row in one["share_of_the_gap"].items()}
    assert shares == {  # of the 4 photos that are lost by rotation
        "always": 0.5,
        "decides": 0.25,
        "likely_turns": 0.75,
        "six_rotations": 0.25,
    }
    assert one["runs_of_the_classifier"] == {"six_rotations": 6, "likely_turns": 1.5}
    sixth = round(1 / 6, 4)
    assert one["upright"]["decides"] == {"accuracy": 0.6667, "lost": sixth, "gained": 0}
    assert one["upright"]["likely_turns"] == {"accuracy": 0.8333, "lost": sixth, "gained": sixth}
    low, high = one["share_of_the_gap"]["decides"]["interval"]
    assert low <= 0.25 <= high


def test_the_classifier_sees_every_likely_turn_of_a_photo_once() -> None:
    """The network is sure of the first photo, and torn between two turns of the second."""
    images = torch.rand(2, 3, 32, 32)
    sure, torn = ([-20.0] * 12, [-20.0] * 12)
    sure[0] = torn[0] = torn[6] = 0.0
    front = TorchCanonicalizer(Answers(torch.tensor([sure, torn])), parent_size=54)  # type: ignore[arg-type]
    task = ClassificationTask(
        "two",
        torch.tensor([0, 1]),
        lambda rows, angles: images[rows],
        lambda turned: turned,
        lambda shown: torch.eye(2)[torch.arange(len(shown)) % 2],
        {},
        0.0,
    )
    result = gap.likely_turns(task, front, torch.zeros(2))
    assert result.runs == 1.5  # 3 for 2 photos
    assert result.predicted[0] == 0


class Answers(nn.Module):
    config = RingConfig(view_size=24, num_beams=12, beam_length=12)

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        return self.logits, torch.zeros_like(self.logits)
