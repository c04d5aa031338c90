"""Rankings of photos: the surer half, and candidates that see more views."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
from conftest import ROOT
from PIL import Image

sys.path.insert(0, str(ROOT / "studies"))
harness, ranking = map(importlib.import_module, ("harness", "ranking"))


def some_outputs(count: int = 40) -> Any:
    """A model that is right where it is sure: its peak is high, or low and elsewhere."""
    rng = np.random.default_rng(0)
    degrees = rng.uniform(0, 360, count)
    logits = rng.normal(0, 0.1, (count, 4, 72)).astype(np.float32)
    for n in range(count):
        for quarter in range(4):
            wrong = 180 if n % 2 else 0
            place = round((degrees[n] + wrong) / 5 + 18 * quarter) % 72
            logits[n, quarter, place] += 4 if n % 2 else 9
    return ranking.Outputs(logits, np.zeros_like(logits), degrees)


def test_the_half_with_the_higher_scores_counts() -> None:
    right = np.array([True, False, True, False])
    assert harness.surer(right, np.array([0.9, 0.1, 0.8, 0.2])) == 1
    assert harness.surer(right, np.array([0.9, 0.95, 0.1, 0.2])) == 0.5


def test_every_candidate_finds_the_sure_ones_and_counts_its_views() -> None:
    outputs = some_outputs()
    rows = {
        name: ranking.figures(candidate, outputs.degrees)
        for name, candidate in ranking.candidates(outputs, 1.0, 0.5)
    }
    assert rows["confidence, one view"]["views"] == 1
    assert rows["confidence, always four views"]["views"] == 4
    assert 1 < rows["confidence, four views below 0.8"]["views"] < 4
    for name, row in rows.items():
        assert row["within_10"] == 0.5, name
        assert row["surer_half"] == 1, name


def test_outputs_are_made_from_rotated_files_and_kept(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (120, 160, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    made = ranking.cached_outputs(tmp_path, "ring", tmp_path / "kept.npz")
    assert made.logits.shape == made.offsets.shape == (1, 4, 48)
    again = ranking.cached_outputs(tmp_path / "gone", "ring", tmp_path / "kept.npz")
    assert (again.logits == made.logits).all() and again.degrees == made.degrees
