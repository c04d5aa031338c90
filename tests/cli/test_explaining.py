"""`upright --explain`: the sentences name what decided, and only that."""

from __future__ import annotations

from typing import Any

import pytest

from radialbeams.batch import JobSettings, Outcome
from radialbeams.cli.explaining import explanation
from radialbeams.cli.terminal import KINDS

JOB = JobSettings("general", turns=True)


def explained(**fields: Any) -> str:
    usual: dict[str, Any] = {"angle_ccw": 92.0, "confidence": 0.95, "symmetry": 1}
    quarter = {"quarter": 90, "quarter_confidence": 0.741, "action": "unsure", "reason": "unsure"}
    return "\n".join(explanation(Outcome("a.jpg", **{**usual, **quarter, **fields}), JOB))


def decided(measure: str, value: float, threshold: float) -> dict[str, Any]:
    return {"measure": measure, "value": value, "threshold": threshold}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.9799, "97.99%, is below 98%"),
        (0.97996, "97.996%, is below 98%"),
        (0.7953, "79.5%, is below 98%"),
        (0.98, "98%, reaches 98%"),
    ],
)
def test_a_number_near_its_threshold_has_enough_digits(value: float, text: str) -> None:
    assert text in explained(**decided("quarter", value, 0.98))


def test_with_a_rectangle_there_is_one_probability() -> None:
    applied = {"action": "turned", "reason": None, "applied_ccw": 322.0, "applied_by": "frame"}
    text = explained(**applied, frame_ccw=38.0, **decided("quarter", 0.998, 0.91))
    assert "74.1%" not in text
    assert "the probability of this one of the rectangle's four directions, 99.8%, rea" in text


def test_a_tilt_that_fills_its_canvas_names_the_rule_and_the_option() -> None:
    text = explained(angle_ccw=39.8, **decided("exact", 0.001, 0.02))
    assert "left as it is: it fills its canvas, where by default only quarter turns are" in text
    assert "unsure" not in text
    assert "--snap none turns it by the estimated angle" in text


def test_a_correction_is_not_explained_by_the_model() -> None:
    turned = {"action": "turned", "reason": None, "applied_ccw": 90.0, "applied_by": "quarter"}
    text = explained(angle_ccw=284.8, **turned, measure="hand")
    assert "counter-clockwise, by the angle in --corrections." in text
    assert "--snap none" not in text
    left = {"action": "left", "reason": "upright already", "measure": "hand"}
    assert "It is left as it is: --corrections says so." in explained(**left)


def test_what_a_quarter_turn_leaves_is_said() -> None:
    applied = {"action": "turned", "reason": None, "applied_ccw": 180.0, "applied_by": "quarter"}
    number = decided("quarter", 0.99, 0.98)
    text = explained(angle_ccw=199.6, **applied, **number)
    assert "it is then still rotated by 19.60° counter-clockwise; --snap none" in text
    assert "still rotated" not in explained(angle_ccw=183.0, **applied, **number)


def test_a_small_tilt_is_called_a_tilt() -> None:
    left = {"action": "left", "reason": "upright already", **decided("quarter", 0.999, 0.98)}
    text = explained(angle_ccw=355.25, quarter=0, **left)
    assert "tilt is about 5°, and small tilts are left alone" in text
    assert "upright already" not in text
    assert "It is left as it is: upright already" in explained(angle_ccw=0.4, quarter=0, **left)
    left |= decided("angle", 3.0, 5.0)
    text = explained(angle_ccw=3.0, quarter=0, **left)
    assert "tilt is about 3°, and small tilts are left alone, since 3° is less than" in text
    assert KINDS["upright already"] == "left, upright or nearly upright"


def test_corners_of_a_picture_that_may_have_been_turned_before() -> None:
    left = {"action": "left", "reason": "upright already", **decided("frame", 0.03, 0.7)}
    text = explained(angle_ccw=1.0, frame_ccw=328.0, **left)
    assert "a picture that was turned upright before looks the same" in text
    assert "is 3% (minimum: 70%)" in text


def test_no_clear_up_is_what_was_found_and_not_a_fact() -> None:
    text = explained(symmetry=0, reason="no up", **decided("quarter", 0.4, 0.98))
    assert "It is left as it is: no clear up was found, since" in text
    assert KINDS["no up"] == "left, no clear up found"
