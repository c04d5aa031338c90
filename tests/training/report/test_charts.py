"""Charts: everything is drawn inside, and axes hold their values."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radialbeams.training.report.charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Chart,
    dial,
    linear,
    log_degrees,
    percent,
    steps,
)

degrees = st.floats(0.0, 180.0)


@settings(deadline=None)
@given(st.lists(degrees, min_size=1, max_size=20))
def test_a_logarithmic_axis_holds_its_values(values: list[float]) -> None:
    axis = log_degrees("error", values)
    assert len(axis.ticks) >= 3
    assert axis.low <= max(min(values), 0.01) and max(values) <= max(axis.high, 0.01)
    assert all(axis.low <= tick <= axis.high for tick, _ in axis.ticks)


@settings(deadline=None)
@given(st.floats(1e-3, 1e6))
def test_a_linear_axis_has_few_round_ticks_and_holds_its_end(high: float) -> None:
    axis = linear("y", 0, high)
    assert axis.high >= high * (1 - 1e-9)
    assert 2 <= len(axis.ticks) <= 7
    assert len({label for _, label in axis.ticks}) == len(axis.ticks)


@settings(deadline=None)
@given(st.integers(1, 10**7))
def test_steps_are_labelled_within_the_run(last: int) -> None:
    axis = steps(last)
    assert axis.high == last
    assert all(0 <= value <= last and value == int(value) for value, _ in axis.ticks)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-1, 2), st.floats(-1, 2)), min_size=1, max_size=30))
def test_nothing_is_drawn_outside(points: list[tuple[float, float]]) -> None:
    chart = Chart(percent("x"), percent("y"), "t")
    chart.line(points, "first")
    drawn = re.findall(r"(?:points|cx)=\"([^\"]+)\"", chart.parts[0])
    for place in drawn[0].split() if "," in drawn[0] else []:
        x, y = map(float, place.split(","))
        assert LEFT <= x <= WIDTH - RIGHT and TOP <= y <= HEIGHT - BOTTOM


def test_one_point_is_a_dot_and_none_is_nothing() -> None:
    chart = Chart(percent("x"), percent("y"), "t")
    chart.line([(0.5, 0.5)], "first")
    chart.line([], "first")
    assert len(chart.parts) == 1 and "<circle" in chart.parts[0]


def test_high_values_are_drawn_above_low_ones() -> None:
    chart = Chart(percent("x"), percent("y"), "t")
    (left, low), (right, high) = chart.place(0, 0), chart.place(1, 1)
    assert (left, low) == (LEFT, HEIGHT - BOTTOM)
    assert (right, high) == (WIDTH - RIGHT, TOP)


def test_words_are_escaped() -> None:
    chart = Chart(percent("<x>"), percent("y"), '"quoted"')
    chart.upright(0.2, "<b>", "second")
    assert "<x>" not in chart.svg() and "<b>" not in chart.svg()
    assert 'aria-label="&quot;quoted&quot;"' in chart.svg()


@pytest.mark.parametrize(
    ("angle", "x", "y"), [(0, 0, -46), (90, -46, 0), (180, 0, 46), (270, 46, 0)]
)
def test_a_dial_turns_counter_clockwise_from_the_top(angle: float, x: float, y: float) -> None:
    drawn = dial((), 5, angle)
    (hand,) = re.findall(r'hand answer" x1="0.0" y1="0.0" x2="(\S+)" y2="(\S+)"', drawn)
    assert [float(one) for one in hand] == pytest.approx([x, y], abs=0.06)
