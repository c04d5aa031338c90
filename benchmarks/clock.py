"""Times of several calls in turns, and as ratios to one of them.

Other programs slow a machine down by a factor that changes from minute to minute. Calls that run
in turns are slowed down alike, so their ratio is reliable where their times are not.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

from radialbeams.stored import JsonDict

Call = Callable[[], object]


def in_turns(
    calls: Mapping[str, Call], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Median seconds of each call, after one round of warm-up."""
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            started = clock()
            call()
            if number:
                spent[name].append(clock() - started)
    return {name: statistics.median(times) for name, times in spent.items()}


def compared(seconds: Mapping[str, float], reference: str, each: int = 1) -> JsonDict:
    """A group of results: milliseconds per item, and ratios to the reference."""
    return {
        "reference": reference,
        "milliseconds": {name: _digits(1000 * value / each) for name, value in seconds.items()},
        "ratio": {name: _digits(value / seconds[reference]) for name, value in seconds.items()},
    }


def best(repeats: int, call: Call) -> float:
    """Seconds of the fastest of several calls, for calls that cannot run in turns."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
