"""`upright --engine ray`: checks, progress with the expected end time, and the summary."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import typer

from radialbeams.cli import terminal
from radialbeams.cli.progress import leave, stoppable
from radialbeams.cli.streams import print_data
from radialbeams.cli.terminal import print_message
from radialbeams.escaping import as_json

if TYPE_CHECKING:
    from radialbeams.batch import JobSettings, Outcome
    from radialbeams.engines.ray import RayRun

EVERY = 10.0  # seconds between two lines of progress
DAY = 86_400


class RayOptions(NamedTuple):
    """The options for Ray; `radialbeams.engines` is imported only when it is needed."""

    address: str | None
    workers: int | None


def turn_with_ray(
    job: JobSettings,
    sources: list[str],
    out: str | None,
    cluster: RayOptions,
    column: str | None,
    *,
    fresh: bool,
    json_: bool,
) -> None:
    from radialbeams import zoo
    from radialbeams.engines import ray

    place = _checked(job, sources, out)
    started = time.monotonic()
    where = ray.Cluster(*cluster)
    with stoppable(job), ray.run(job, sources, place, where, column=column, fresh=fresh) as run:
        counts = _follow(run, job, json_)
    print_message(terminal.summary(counts, time.monotonic() - started, job))
    for line in terminal.thresholds(counts, job, zoo.find(job.model).card):
        print_message(line)
    print_message(f"report: {place.rstrip('/')}/_report")
    leave(counts)


def _checked(job: JobSettings, sources: list[str], out: str | None) -> str:
    if out is None or out == "-" or "-" in sources:
        raise typer.BadParameter("--engine ray needs an output folder or URL; give it with -o.")
    if job.in_place or not job.writes or job.thumbnails:
        raise typer.BadParameter(
            "--engine ray writes outputs and a Parquet report; leave out --in-place, --dry-run "
            "and --report."
        )
    return out


def _follow(run: RayRun, job: JobSettings, json_: bool) -> Counter[str]:
    counts: Counter[str] = Counter()
    if run.units_before:
        print_message(
            f"radialbeams: resuming; {run.units_before:,} of {run.units:,} units were done before."
        )
    clock = _Clock(run, time.monotonic)
    for outcomes in run.outcomes:
        for outcome in outcomes:
            _tell(outcome, job, json_)
            counts[outcome.kind] += 1
        if line := clock.after(len(outcomes)):
            print_message(line)
    return counts


def _tell(outcome: Outcome, job: JobSettings, json_: bool) -> None:
    if outcome.problem is not None:
        print_message(terminal.failure(outcome))
    if json_:
        print_data(as_json(outcome.record(job)))


class _Clock:
    """Progress lines with the expected end time, based on the units done since this start."""

    def __init__(self, run: RayRun, now: Callable[[], float]) -> None:
        self._units, self._before, self._now = run.units, run.units_before, now
        self._done = self._images = 0
        self._begun = self._reported = now()

    def after(self, images: int) -> str | None:
        """Counts another finished unit; returns a progress line if one is due."""
        self._done += 1
        fresh = self._done - self._before - 1
        if fresh < 1:  # done by an earlier start, or the first unit, which waited for the actors
            self._begun = self._now()
            return None
        self._images += images
        now = self._now()
        if now - self._reported < EVERY or now == self._begun:
            return None
        self._reported = now
        spent = now - self._begun
        seconds_left = spent / fresh * (self._units - self._done)
        return (
            f"radialbeams: {self._done:,} of {self._units:,} units, "
            f"{self._images / spent:,.0f} images per second, ends {_clock_time(seconds_left)}"
        )


def _clock_time(seconds: float) -> str:
    end = datetime.now() + timedelta(seconds=seconds)
    return f"{end:%H:%M:%S}" if seconds < DAY else f"{end:%Y-%m-%d %H:%M}"
