"""Looks at both ends: the rules of the study, and photos without a canvas."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from PIL import Image

from radialbeams.posterior import Calibration
from tools.photos.measure_photos import inner

ends = importlib.import_module("ends")
BINS = 8


def outputs(wrong: float) -> object:
    """Pairs of photos at 90°. Of the second, the middle leans to 270°, and both ends are right."""
    logits = np.zeros((2, 6, BINS), np.float32)
    for view, turn in enumerate((0, 1, 2, 3, *ends.AT_ENDS)):
        logits[:, view, (2 + 2 * turn) % BINS] = 6.0
        if view < 4:
            logits[1, view, (6 + 2 * turn) % BINS] = wrong
    logits = np.tile(logits, (ends.BINS, 1, 1))  # a photo at least for each bin of confidence
    return ends.Outputs(logits, np.zeros_like(logits), np.full(len(logits), 90.0))


def test_ends_overrule_an_unsure_middle_that_is_wrong() -> None:
    rows = ends.rules(outputs(wrong=6.5), Calibration(1.0, 0.0))
    assert rows["one view"]["within_10"] == 0.5
    assert rows[ends.BEFORE]["within_10"] == 0.5  # its quarter turns say the same
    assert rows["both ends, below 0.9"]["within_10"] == 1
    assert rows["both ends, below 0.9"]["views"] == 2  # one of two photos has two more
    assert ends.SHIPPED in rows


@pytest.mark.parametrize("degrees", [0, 10, 45, 46, 90, 135, 200, 300, 359])
@pytest.mark.parametrize("size", [(64, 40), (40, 64), (50, 50)])
def test_a_photo_cut_out_shows_no_canvas(size: tuple[int, int], degrees: int) -> None:
    white = Image.new("L", size, 255)
    cut = inner(white.rotate(degrees, expand=True), size, degrees)
    assert np.asarray(cut).min() == 255
    assert min(cut.size) > 0.4 * min(size)
