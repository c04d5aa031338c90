"""Progress of a distributed run: units, images a second, and when it will end."""

from __future__ import annotations

from datetime import datetime, timedelta

from radialbeams.batch import Outcome
from radialbeams.cli.scale import EVERY, _Clock, _clock_time
from radialbeams.engines.ray import RayRun


def clock(units: int, before: int, times: list[float]) -> _Clock:
    def none() -> list[list[Outcome]]:
        return []

    run = RayRun((one for one in none()), units, before)
    return _Clock(run, iter(times).__next__)


def test_the_rate_counts_from_the_first_unit_of_this_start() -> None:
    """Units of an earlier start, and the time until actors have started, say nothing about it."""
    progress = clock(12, 2, [0, 1, 2, 60, 60 + EVERY, 60 + 2 * EVERY])
    assert [progress.after(100) for _ in range(3)] == [None, None, None]
    line = progress.after(100) or ""
    assert line.startswith("radialbeams: 4 of 12 units, 10 images per second, ends ")
    ends = (datetime.now() + timedelta(seconds=8 * EVERY)).strftime("%H:%M")
    assert ends in line or _clock_time(8 * EVERY)[:5] in line


def test_lines_come_no_more_often_than_every_few_seconds() -> None:
    progress = clock(100, 0, [0, 50, 51, 51 + EVERY, 52 + EVERY])
    lines = [progress.after(10) for _ in range(4)]
    assert [line is not None for line in lines] == [False, True, True, False]


def test_a_run_that_ends_another_day_says_which() -> None:
    day = datetime.now() + timedelta(days=3)
    assert _clock_time(3 * 86_400).startswith(day.strftime("%Y-%m-%d"))
