"""The checks behind `reproduce loss`."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from radialbeams.nn.angles import circle_loss
from radialbeams.reproduce import loss
from radialbeams.reproduce.runner import reproduce
from radialbeams.reproduce.settings import ReproduceSettings


def test_the_terms_add_up_to_the_loss() -> None:
    angles = torch.tensor([0.3, 2.0, 4.0], dtype=torch.float64)
    values = torch.tensor([-1.0, 0.2, 0.9], dtype=torch.float64)
    imaginary, real = loss.terms(angles, values)
    for i, angle in enumerate(angles):
        for j, im in enumerate(values):
            for k, re in enumerate(values):
                whole = circle_loss(angle, torch.stack((re, im)))
                assert whole.item() == pytest.approx((imaginary[i, j] + real[i, k]).item())


def test_the_bound_is_that_of_unit_vectors() -> None:
    found = loss.extremes(361)
    assert found["unit"] == pytest.approx(4)
    assert found["exchanged"] == pytest.approx(4)
    assert found["exchanged_at"] in (pytest.approx(135), pytest.approx(315))
    assert found["square"] == pytest.approx(1 + 2 + 2 * math.sqrt(2))  # (−1, −1) against 45°
    assert found["least"] == pytest.approx(0)


def test_the_constant_is_reached_and_not_passed() -> None:
    found = loss.steepest(20_000)
    assert 1.99 < found["unit"] <= 2 + 1e-6
    assert 2 < found["square"] <= 2 * math.sqrt(2) + 1e-6


def test_the_printed_gradients_of_z_point_the_wrong_way() -> None:
    assert loss.gradient_signs(500) == {"θ": 1.0, "re": 0.0, "im": 0.0}


def test_no_curve_of_the_plot_passes_its_bound() -> None:
    curves = loss.lipschitz_curves(91)
    for name in ("change", "steep"):
        assert all(c <= b + 1e-9 for c, b in zip(curves[name], curves["bound_2"], strict=True))
    # With z at 90° the constant 1 would be too small.
    assert any(c > b for c, b in zip(curves["steep"], curves["bound_1"], strict=True))


def test_flips_weigh_more_in_the_papers_figure() -> None:
    found = loss.with_flips(0.01)
    assert found["mean"] == pytest.approx(1.8)
    assert found["paper_equivalent"] == pytest.approx(11.48, abs=0.01)


@pytest.mark.slow
def test_the_whole_of_it(tmp_path: Path) -> None:
    files = reproduce("loss", ReproduceSettings(quick=True, out=tmp_path))
    record = json.loads(files[0].read_text())
    for name, printed in record["paper"].items():
        if name != "upper bound, z in [−1, 1]²":
            ours, theirs = (
                float(str(value).strip("°")) for value in (record["ours"][name], printed)
            )
            assert ours == pytest.approx(theirs, rel=0.01)
    assert {path.name for path in files} == {
        "loss.json", "loss.png", "loss.svg", "loss-degrees.png", "loss-degrees.svg",
    }  # fmt: skip
