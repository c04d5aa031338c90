"""The share of the gap that a model regains: which photos count, and how sure the share is."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import torch
from conftest import ROOT

from radialbeams.front.accuracy import AngleEstimates, Tally

sys.path.insert(0, str(ROOT / "studies"))
gap = importlib.import_module("gap")


def test_near_photos_are_left_out_unless_all_were_looked_at(tmp_path: Path) -> None:
    place = tmp_path / "overlap.json"
    near = [{"photo": "0075_n01774384_black_widow", "like": "coco/1", "bits": 16}]
    for same, expected in ((None, {"n01774384"}), (1, {"n01774384"}), (0, set())):
        found = {"against": {"coco": {"near": near}}, "same_by_eye": same}
        place.write_text(json.dumps(found), encoding="utf-8")
        assert gap.alike(place) == expected
    assert gap.alike(tmp_path / "none") == set()


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
