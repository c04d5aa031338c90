"""The share of the gap that a model regains: which photos count, and how sure the share is."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import torch
from conftest import ROOT

from radialbeams.front.accuracy import AngleEstimates, Tally
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


def test_shares_count_what_a_model_regains_when_it_acts_and_when_it_decides() -> None:
    right = {"plain": [1, 1, 0, 0, 0, 0], "m": [0, 1, 1, 1, 1, 0], "ceiling": [1] * 6}
    found = tallied(right, [False, True, True, False, False, True])
    upright = tallied({**right, "plain": [1] * 6}, [True] + [False] * 5)
    one = gap.measured(found, upright, "m")
    assert one["share_of_the_gap"]["always"]["share"] == 0.5  # 2 to 4 of 6
    assert one["share_of_the_gap"]["decides"]["share"] == 0.25  # 2 to 3
    assert one["upright"]["lost"] == 1 / 6
    low, high = one["share_of_the_gap"]["decides"]["interval"]
    assert low <= 0.25 <= high
