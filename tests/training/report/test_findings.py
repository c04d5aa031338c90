"""What the report shows is what was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from conftest import easy_images

from radialbeams.cards import Card, ViewProtocol
from radialbeams.nn.angles import circle_loss, to_unit
from radialbeams.nn.bic import BIC
from radialbeams.nn.ring_network import RingBIC
from radialbeams.posterior import Thresholds
from radialbeams.training.data import ImageSet
from radialbeams.training.report import Findings, crooked_images, find
from radialbeams.training.report.answers import Answers, Chances, evenly, held_out_answers
from radialbeams.training.report.certainty import acting, reliability, risk_coverage
from radialbeams.training.report.findings import (
    EDGES,
    by_angle,
    by_group,
    histogram,
    loss_in_degrees,
    training_curve,
    validation_curve,
    worst_places,
)
from radialbeams.training.views import PaperViews
from radialbeams.training.weights import new_card

from .conftest import LINES, PARENT, VIEWS


def answers(truth: list[float], found: list[float], sure: list[float]) -> Answers:
    """One seed of hand-made answers, in degrees."""
    row = torch.tensor([sure])
    chances = Chances(row, torch.zeros_like(row), 1 - row, torch.zeros(1), torch.zeros(1))
    return Answers(torch.arange(len(truth)), torch.tensor([truth]), torch.tensor([found]), chances)


# --- the views ---


def test_without_figures_on_the_card_the_same_views_are_measured(
    ring: RingBIC, ring_card: Card, held_out: ImageSet, findings: Findings
) -> None:
    bare = find(ring, replace(ring_card, metrics={}), held_out, VIEWS, ())
    ours, theirs = bare.evaluation, ring_card.metrics["leakfree"].evaluation
    assert findings.evaluation == theirs
    assert ours.n == theirs.n == 72
    for name in ("mean", "mean_low", "median", "within_10", "calibration_error"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=1e-3)


def test_a_part_of_the_images_is_shown_at_the_angles_of_the_whole(
    ring: RingBIC, ring_card: Card, held_out: ImageSet
) -> None:
    settings = (ring, held_out, VIEWS, ring_card.calibration)
    whole, part = held_out_answers(*settings), held_out_answers(*settings, most=7)
    assert part.rows.tolist() == [0, 3, 6, 10, 13, 17, 20]
    assert torch.equal(part.truth, whole.truth[:, part.rows])
    assert torch.allclose(part.error, whole.error[:, part.rows], atol=1e-2)


def test_a_small_report_says_how_many_images_it_shows(
    ring: RingBIC, ring_card: Card, held_out: ImageSet
) -> None:
    found = find(ring, ring_card, held_out, VIEWS, LINES, most=7)
    assert (found.shown, found.held_out, len(found.sheet), len(found.worst)) == (7, 24, 7, 7)


@pytest.mark.parametrize(("count", "most", "rows"), [(3, 5, [0, 1, 2]), (5, 2, [0, 2]), (0, 4, [])])
def test_rows_are_evenly_spaced(count: int, most: int, rows: list[int]) -> None:
    assert evenly(count, most).tolist() == rows


def test_the_worst_views_come_first_and_each_image_once(findings: Findings) -> None:
    errors = [one.error for one in findings.worst]
    assert errors == sorted(errors, reverse=True)
    assert len({one.name for one in findings.worst}) == len(findings.worst) == 20
    assert errors[0] == pytest.approx(max(errors))
    error = torch.tensor([[1.0, 9.0, 3.0], [7.0, 8.0, 4.0]])
    assert worst_places(error).tolist() == [1, 3, 5]  # 9°, 7° and 4°


def test_a_shown_view_is_the_parent_turned_by_its_true_angle(findings: Findings) -> None:
    """The bright half of `easy_images` is up; turned counter-clockwise by a, up points there."""
    for one in findings.sheet:
        assert _bright_direction(one.before) == pytest.approx(one.truth % 360, abs=12)
        # Turned back by the answer, what is left is the error.
        left = (one.truth - one.answer) % 360
        away = abs((_bright_direction(one.after) - left + 180) % 360 - 180)
        assert away < 12


def _bright_direction(pixels: np.ndarray) -> float:
    """Degrees counter-clockwise from the top at which the disc is brightest."""
    side = len(pixels)
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    weight = pixels.mean(-1) * (np.hypot(x, y) < side / 2 - 2)
    return math.degrees(math.atan2(-(weight * x).sum(), -(weight * y).sum())) % 360


# --- curves ---


def test_the_curves_are_those_of_the_log() -> None:
    assert [point.step for point in training_curve(LINES)] == [5, 10]
    (first, second) = validation_curve(LINES)
    assert (first.mean, first.low, first.high, second.step) == (80.0, 70.0, 90.0, 10)
    assert training_curve(()) == validation_curve([{"step": 1, "held_out": {}}]) == ()


@pytest.mark.parametrize("degrees", [0.0, 1.0, 30.0, 180.0])
def test_a_loss_is_shown_as_its_angle(degrees: float) -> None:
    loss = circle_loss(torch.tensor(0.0), to_unit(torch.tensor(math.radians(degrees))))
    assert loss_in_degrees(loss.item()) == pytest.approx(degrees, abs=0.05)
    assert loss_in_degrees(4.0001) == 180  # rounding must not leave the circle


# --- errors ---


def test_every_view_is_in_one_bar() -> None:
    shares = histogram(torch.tensor([[0.0, 1.0, 1.5, 150.0, 150.1, 180.0]]))
    assert len(shares) == len(EDGES)
    assert sum(shares) == pytest.approx(1)
    assert [round(6 * value) for value in shares] == [2, 1, 0, 0, 0, 0, 0, 1, 2]


def test_errors_are_shown_where_the_true_angle_is() -> None:
    truth = [10.0, 100.0, 200.0, 359.9]
    seen = answers(truth, [11.0, 102.0, 203.0, 3.9], [0.5] * 4)
    assert [cell.mean for cell in by_angle(seen)] == pytest.approx([1, 2, 3, 4], abs=1e-3)


def test_groups_come_worst_first_and_small_ones_last() -> None:
    names = ["good"] * 5 + ["bad"] * 5 + ["tiny"]
    seen = answers([0.0] * 11, [1.0] * 5 + [20.0] * 5 + [90.0], [0.5] * 11)
    groups = by_group(seen, names)
    assert [(group.name, group.small) for group in groups] == [
        ("bad", False),
        ("good", False),
        ("tiny", True),
    ]
    assert [group.within_10 for group in groups] == [0, 1, 0]
    assert by_group(seen, [""] * 11) == ()


# --- confidence ---


def test_confidence_is_compared_with_how_often_it_is_right() -> None:
    sure = [0.2] * 30 + [0.9] * 30
    found = [0.0] * 6 + [90.0] * 24 + [0.0] * 27 + [90.0] * 3
    bins = reliability(answers([0.0] * 60, found, sure))
    low = [one.right.mean for one in bins if one.confidence < 0.5]
    high = [one.right.mean for one in bins if one.confidence > 0.5]
    assert np.mean(low) == pytest.approx(0.2)
    assert np.mean(high) == pytest.approx(0.9)


def test_the_surest_answers_are_kept_first() -> None:
    seen = answers([0.0] * 100, [float(k) for k in range(100)], [1 - k / 100 for k in range(100)])
    curve = risk_coverage(seen)
    assert curve[-1].coverage == 1
    assert curve[-1].mean == pytest.approx(49.5, abs=1e-3)
    assert [one.mean for one in curve] == sorted(one.mean for one in curve)


def test_thresholds_decide_what_is_acted_on() -> None:
    # Sure and right; sure and wrong; unsure; sure, but hardly turned.
    seen = answers([90.0, 90.0, 90.0, 1.0], [91.0, 180.0, 90.0, 1.0], [0.9, 0.9, 0.1, 0.9])
    found = acting(seen, Thresholds(confidence=0.5, angle=2.0, upright=0.5))
    assert found is not None
    assert (found.acted, found.right, found.confident) == (0.5, 0.5, 0.75)
    assert found.spoilt == 0.25  # the wrong one; the others move by less than 2°
    nothing = acting(seen, Thresholds(confidence=1.0))
    assert nothing is not None
    assert (nothing.acted, nothing.right, nothing.confident_mean) == (0, None, None)


# --- networks without a posterior, crooked images ---


def test_a_network_without_confidence_has_a_report(tiny_model: BIC) -> None:
    images = easy_images(8)
    card = new_card(tiny_model, ViewProtocol("paper", 28), "lstm")
    found = find(tiny_model, card, images, PaperViews(), ())
    assert (found.reliability, found.risk_coverage, found.acting, found.ambiguous) == (
        (),
        (),
        None,
        (),
    )
    assert found.evaluation.calibration_error is None
    assert found.worst[0].confidence is None and found.worst[0].mass == ()


@dataclass(frozen=True)
class Turned:
    index: int
    angle: float
    confidence: float


def test_a_crooked_image_is_shown_as_it_is_and_turned_back() -> None:
    images = easy_images(3, size=PARENT)
    crooked = replace(images, images=torch.rot90(images.images, 1, (2, 3)))  # by +90°
    found = crooked_images([Turned(2, 90.0, 0.7), Turned(1, 450.0, 0.9)], crooked)
    assert [one.name for one in found] == ["1", "2"]  # the surest first
    assert [one.angle for one in found] == [90.0, 90.0]
    assert _bright_direction(found[0].before) == pytest.approx(90, abs=3)
    assert min(_bright_direction(found[0].after), 360 - _bright_direction(found[0].after)) < 3
    assert crooked_images([], crooked) == ()
