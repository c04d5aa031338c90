"""Calibration and thresholds for a card, from held-out images."""

from __future__ import annotations

import pytest
import torch
from conftest import TINY_RING, easy_images

from radialbeams.cards import ViewProtocol
from radialbeams.nn.ring_network import RingBIC
from radialbeams.training.judging import FEW, calibrated, in_first_half, rounded_values
from radialbeams.training.thresholds import CAREFUL
from radialbeams.training.weights import new_card


@pytest.mark.parametrize("count", [2, 3, 7, FEW - 1, FEW, 500])
def test_neither_half_is_ever_empty(count: int) -> None:
    names = [f"image {i}" for i in range(count)]
    first = in_first_half(names)
    assert 0.3 < sum(first) / count < 0.7
    assert in_first_half(names[::-1]) == first[::-1]


def test_equal_names_are_in_one_half() -> None:
    first = in_first_half(["anna", "bert", "anna", "carl"])
    assert first[0] == first[2]


def test_the_card_gets_calibration_thresholds_and_what_to_expect() -> None:
    torch.manual_seed(0)
    model = RingBIC(TINY_RING).eval()
    card = new_card(model, ViewProtocol("leakfree", 64))
    made = calibrated(card, model, easy_images(6, size=64), by_group=True, seeds=3)
    assert made.abstain is not None and made.abstain.upright <= max(CAREFUL)
    assert made.calibrated["n"] == 18
    assert set(made.calibrated) == {
        *("expected_error", "expected_error_by_object", "expected_upright_worse", "n"),
    }


def test_values_are_rounded_wherever_they_are() -> None:
    assert rounded_values({"a": [0.123456, {"b": 2}]}) == {"a": [0.1235, {"b": 2}]}
