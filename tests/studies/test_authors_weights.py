"""The beams that the authors' weights read; running the weights needs TensorFlow."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import torch
from conftest import ROOT

sys.path.insert(0, str(ROOT / "studies"))
authors = importlib.import_module("authors_weights")


def test_beams_run_from_the_centre_in_equal_steps_along_the_border() -> None:
    width, padding = authors.canvas_of(128)
    assert (width, padding) == (155, 13)
    ends = authors.ends(width)
    assert ends[:5].tolist() == [[0, 0], [38, 0], [76, 0], [114, 0], [154, 0]]
    assert ends[8:10].tolist() == [[152, 154], [114, 154]]
    assert ends[12:].tolist() == [[0, 152], [0, 114], [0, 76], [0, 38]]
    assert len(np.unique(ends, axis=0)) == 16


def test_lines_have_no_gaps_and_one_pixel_on_each_side() -> None:
    for line in authors.pixels_of(128):
        left, middle, right = line
        assert (middle[0] == 77).all()
        assert (np.abs(np.diff(middle, axis=0)).max(1) == 1).all()
        assert (left + right == 2 * middle).all()
        assert (np.abs(left - middle).sum(1) == 1).all()


def test_lines_are_the_nearest_pixels() -> None:
    width, _ = authors.canvas_of(128)
    for end, line in zip(authors.ends(width), authors.pixels_of(128), strict=True):
        towards = (end - width // 2) / np.abs(end - width // 2).max()
        exact = width // 2 + np.arange(64)[:, None] * towards
        assert np.abs(line[1] - exact).max() <= 0.51 + 1 / 77


def test_a_quarter_turn_moves_what_a_beam_sees() -> None:
    images = torch.zeros(1, 3, 128, 128, dtype=torch.uint8)
    images[..., 2:12, 2:12] = 255  # upper left
    means = [
        authors.beams_of(images, torch.tensor([angle]))[0].mean((1, 2, 3))
        for angle in (0.0, np.pi / 2)
    ]
    brightest = [int(mean.argmax()) for mean in means]
    assert brightest[0] == 0
    # The first index is the row, so beams run counter-clockwise: the lower left is a quarter on.
    assert brightest[1] == 4
