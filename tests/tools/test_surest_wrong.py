"""Photos by a tilted camera count as right in the judgement, and judgements are kept."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from PIL import Image

from radialbeams.training.views import draws

sys.path.insert(0, str(ROOT / "tools" / "photos"))
surest = importlib.import_module("surest_wrong")

ROWS = [
    {"photo": "1.jpg", "error": 20.0, "confidence": 0.99},
    {"photo": "2.jpg", "error": -95.0, "confidence": 0.98},
]


def test_judgements_of_an_earlier_run_are_kept(tmp_path: Path) -> None:
    place = tmp_path / "judged.json"
    place.write_text(json.dumps({"wrong": [{"photo": "1.jpg", "judged": surest.TILTED}]}))
    judged = surest.with_judgements(ROWS, place)
    assert [row["judged"] for row in judged] == [surest.TILTED, ""]
    found = surest.summarised(judged, half=10)
    assert (found["right"], found["right_as_judged"]) == (0.8, 0.9)
    assert found["largest_error"] == 95


def test_only_the_surer_half_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = [tmp_path / f"{n}.jpg" for n in range(4)]
    for path in photos:
        Image.new("RGB", (8, 8)).save(path)
    sure, errors = [0.9, 0.2, 0.8, 0.1], [0.0, 90.0, 30.0, 180.0]

    def answered(verb: str, folder: Path, *options: str) -> list[dict[str, float]]:
        angles = 360 * draws("evaluation", 0, 0, (4, 6))[:, 0]
        return [
            {"angle_ccw": (angle + error) % 360, "confidence": confidence}
            for angle, error, confidence in zip(angles, errors, sure, strict=True)
        ]

    monkeypatch.setattr(surest, "command", answered)
    (row,) = surest.surest_wrong(photos, "general")
    assert row == {"photo": "2.jpg", "error": 30.0, "confidence": 0.8}
    sheet = tmp_path / "sheet.png"
    surest.draw_sheet([row], photos, sheet)
    with Image.open(sheet) as drawn:
        assert drawn.size == (surest.CELL[0], 2 * surest.CELL[1])
        assert np.asarray(drawn).min() == 0  # the black photo is on it
