"""Ways of taking an angle from posteriors: what each takes, and the share that counts."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

from radialbeams.posterior import Calibration

sys.path.insert(0, str(ROOT / "studies"))
parts = importlib.import_module("gap_parts")


@pytest.fixture
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_all_ways_agree_on_a_clear_photo_and_the_bound_only_changes_quarters(at_root: None) -> None:
    logits = np.full((2, 4, 72), -9.0, np.float32)
    for quarter in range(4):
        logits[:, quarter, (10 + 18 * quarter) % 72] = 9.0  # 50°
    found = parts.estimates(
        logits, np.zeros_like(logits), np.array([50.0, 228.0]), Calibration(1.0, 0.5)
    )
    for name, angles in found.items():
        assert angles[0] == pytest.approx(50, abs=0.1), name
    bound = found["four views, right quarter given"][1]
    assert bound % 360 == pytest.approx(230, abs=0.1)  # 180° more, and 2° of error stay


def test_shares_are_those_of_all_photos_and_of_two_halves() -> None:
    plain, ceiling = np.zeros(4, bool), np.ones(4, bool)
    right = np.array([True, False, True, True])
    found = parts.figures(right, plain, ceiling, np.array([1.0, 90.0, 20.0, 5.0]))
    assert (found["share"], found["first_half"], found["second_half"]) == (0.75, 1.0, 0.5)
    assert (found["within_10"], found["within_45"]) == (0.5, 0.75)


def test_what_was_made_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    made = parts.kept(folder, "a", lambda: {"x": np.arange(3)})
    assert (parts.kept(folder, "a", lambda: pytest.fail("made twice"))["x"] == made["x"]).all()
