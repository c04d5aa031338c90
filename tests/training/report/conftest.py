"""One small network, a card that was measured with it, and the findings about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from conftest import TINY_RING, easy_images

from radialbeams.cards import Card, DataCard, Measurement, TrainingCard, ViewProtocol
from radialbeams.nn.ring_network import RingBIC
from radialbeams.posterior import Calibration, Thresholds
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import evaluate, predict_with
from radialbeams.training.report import Findings, find
from radialbeams.training.views import LeakfreeViews
from radialbeams.training.weights import new_card

PARENT = 54  # the smallest whose largest leak-free view is the tiny ring's
VIEWS = LeakfreeViews(24)
LINES: list[dict[str, Any]] = [
    {"step": 5, "epoch": 1, "circle_loss": 2.0},
    {"step": 5, "held_out": {"mean": 80.0, "mean_low": 70.0, "mean_high": 90.0}},
    {"step": 10, "epoch": 2, "circle_loss": 0.5},
    {"step": 10, "held_out": {"mean": 40.0, "mean_low": 30.0, "mean_high": 50.0}},
]


@pytest.fixture(scope="session")
def ring() -> RingBIC:
    torch.manual_seed(0)
    return RingBIC(TINY_RING).eval()


@pytest.fixture(scope="session")
def held_out() -> ImageSet:
    return easy_images(24, size=PARENT)


@pytest.fixture(scope="session")
def ring_card(ring: RingBIC, held_out: ImageSet) -> Card:
    """Measured for real, with a calibration and thresholds."""
    calibration = Calibration(1.5, 2.0)
    result = evaluate(
        lambda views: predict_with(ring, views, *calibration), held_out, VIEWS, seeds=3
    )
    return replace(
        new_card(ring, ViewProtocol("leakfree", PARENT), "tiny"),
        data=DataCard("photos", 96),
        training=TrainingCard({"steps": 10, "batch": 8}, steps_done=10, seconds=2.0),
        calibration=calibration,
        calibrated={"photos": 0.031},
        abstain=Thresholds(0.5, 2.0, 0.1),
        metrics={"leakfree": Measurement(result, "leakfree", seeds=3)},
    )


@pytest.fixture(scope="session")
def findings(ring: RingBIC, ring_card: Card, held_out: ImageSet) -> Findings:
    return find(ring, ring_card, held_out, VIEWS, LINES, run="runs/tiny")
