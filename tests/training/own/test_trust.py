"""Reasons not to trust a run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from radialbeams import zoo
from radialbeams.cards import Card, Evaluation
from radialbeams.posterior import Thresholds
from radialbeams.training.own.trust import LEAST_HELD_OUT, reasons
from radialbeams.training.thresholds import LARGEST_ANGLE


@dataclass(frozen=True)
class Round:
    name: str
    pixel_order: int


@pytest.fixture
def card() -> Card:
    return zoo.find("ring").card


@pytest.fixture
def good(card: Card) -> Evaluation:
    return replace(card.metrics["leakfree"].evaluation, mean=3.0, within_10=0.95)


def test_a_good_run_is_trusted(card: Card, good: Evaluation) -> None:
    assert reasons(card, good, 100) == ()


def test_few_held_out_images_are_a_reason(card: Card, good: Evaluation) -> None:
    assert reasons(card, good, LEAST_HELD_OUT) == ()
    (reason,) = reasons(card, good, LEAST_HELD_OUT - 1)
    assert reason.startswith("Only 7 images were held out")


def test_an_error_near_chance_is_a_reason(card: Card, good: Evaluation) -> None:
    (reason,) = reasons(card, replace(good, mean=71.0, within_10=0.2), 100)
    assert "71° is near chance" in reason and "upright" not in reason


def test_memorised_images_hint_at_crooked_ones(card: Card, good: Evaluation) -> None:
    (reason,) = reasons(card, replace(good, mean=80.0, within_10=0.1), 100, memorised=True)
    assert "probably not upright" in reason


@pytest.mark.parametrize(("order", "words"), [(0, "at every angle"), (4, "when turned by 90°")])
def test_symmetric_data_is_named(order: int, words: str, card: Card, good: Evaluation) -> None:
    round_ones = [Round(f"disc{i}.png", order) for i in range(12)]
    (reason,) = reasons(card, good, 20, ambiguous=round_ones, units=20)
    assert f"12 of 20 look the same {words}" in reason and "disc0.png" in reason
    assert reasons(card, good, 60, ambiguous=round_ones, units=60) == ()


def test_images_that_are_turned_themselves_are_a_reason(card: Card, good: Evaluation) -> None:
    (reason,) = reasons(card, good, 20, crooked=40, images=100)
    assert "40 of 100 are turned themselves" in reason


def measured(card: Card, **values: float) -> Card:
    return replace(card, calibrated={"expected_error": 0.02, "n": 480, **values})


@pytest.mark.parametrize(
    ("name", "unseen"), [("expected_error", "images"), ("expected_error_by_object", "groups")]
)
def test_a_confidence_that_does_not_hold_elsewhere_is_a_reason(
    name: str, unseen: str, card: Card, good: Evaluation
) -> None:
    assert reasons(measured(card, **{name: 0.1}), good, 24) == ()
    (reason,) = reasons(measured(card, **{name: 0.12}), good, 24)
    assert reason.startswith(f"Its confidence is off by 12.0 percentage points on {unseen} that")


def test_thresholds_that_do_not_hold_elsewhere_are_a_reason(card: Card, good: Evaluation) -> None:
    assert reasons(measured(card, expected_upright_worse=0.02), good, 24) == ()
    (reason,) = reasons(measured(card, expected_upright_worse=0.06), good, 24)
    assert "make 6% of the other half worse" in reason


def test_more_images_are_advised_unless_the_data_is_symmetric(card: Card, good: Evaluation) -> None:
    bad = measured(card, expected_error=0.12, expected_upright_worse=0.06)
    first, last = reasons(bad, good, 24)
    assert last.endswith("training, help.") and "help" not in first  # once is enough
    discs = [Round("disc.png", 0)] * 12
    found = reasons(bad, good, 24, ambiguous=discs, units=12)
    assert len(found) == 3 and not any("help" in reason for reason in found)


def test_a_model_that_is_never_right_enough_is_a_reason(card: Card, good: Evaluation) -> None:
    hopeless = replace(card, abstain=Thresholds(1.0, LARGEST_ANGLE, 0.001))
    (reason,) = reasons(hopeless, good, 100)
    assert reason.startswith("At no confidence")
