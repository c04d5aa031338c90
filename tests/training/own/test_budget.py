"""The time budget: what comes after the training fits into the minutes."""

from __future__ import annotations

import pytest

from radialbeams.training.own.budget import CLOSING, ending, training_minutes
from radialbeams.training.own.rules import Budget


@pytest.mark.parametrize("held_out", [1, 10, 100, 3000])
@pytest.mark.parametrize("view_seconds", [1e-4, 4e-3, 0.06])
def test_measuring_takes_a_small_part_of_the_minutes(held_out: int, view_seconds: float) -> None:
    end = ending(held_out, view_seconds, Budget(10.0))
    assert end.seconds < 0.3 * 600
    assert 1 <= end.images <= held_out and end.seeds >= 1


def test_few_images_are_measured_at_more_angles() -> None:
    assert ending(10, 1e-3, Budget(5.0)).seeds > ending(500, 1e-3, Budget(5.0)).seeds


def test_training_gets_what_reading_and_measuring_leave() -> None:
    end = ending(100, 1e-3, Budget(5.0))
    left = training_minutes(Budget(5.0), 20.0, end)
    assert left is not None
    assert 60 * left == pytest.approx(300 - 20 - end.seconds)
    assert end.seconds > CLOSING


def test_too_few_minutes_leave_a_moment() -> None:
    end = ending(100, 1e-3, Budget(0.1))
    assert 0 < (training_minutes(Budget(0.1), 5.0, end) or 0) < 0.01


def test_steps_set_no_time() -> None:
    assert training_minutes(Budget(None, 5), 1.0, ending(10, 1e-3, Budget(None, 5))) is None
