"""The study of small tilts: its pictures, and how its rules are counted."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "studies"))

from straightening import Evidence, best, table, tilted


@pytest.mark.parametrize("degrees", [-10.0, 2.0, 10.0])
@pytest.mark.parametrize("size", [(120, 80), (80, 120), (100, 100)])
def test_a_tilted_photo_has_its_shape_and_no_filled_corner(
    size: tuple[int, int], degrees: float
) -> None:
    photo = tilted(Image.new("L", size, 200), degrees)
    assert photo.width / photo.height == pytest.approx(size[0] / size[1], rel=0.06)
    assert np.asarray(photo).min() == 200


def test_rules_are_counted_on_tilted_and_on_upright_photos() -> None:
    right = Evidence(tilt=5.0, estimate=5.0, confidence=1.0, lines=5.2, strength=20.0)
    wrong = Evidence(tilt=5.0, estimate=-4.0, confidence=1.0, lines=-4.0, strength=5.0)
    level = Evidence(tilt=0.0, estimate=1.0, confidence=1.0, lines=0.2, strength=20.0)
    harmed = Evidence(tilt=0.0, estimate=3.0, confidence=1.0, lines=3.0, strength=5.0)
    rows = table([right, wrong, level, harmed])
    every = next(row for row in rows if (row["confidence"], row["strength"]) == (0.0, 0.0))
    assert (every["tilted_acted_on"], every["tilted_right"]) == (1.0, 0.5)
    assert every["upright_worse"] == 0.5
    careful = best(rows, worse=0.0)
    assert careful is not None
    assert (careful["tilted_acted_on"], careful["tilted_right"]) == (0.5, 0.5)
    assert careful["strength"] > 5.0
