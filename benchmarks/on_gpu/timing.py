"""Times of calls on a device, captured as CUDA graphs, and the kernels that they spend it in.

On a CPU everything runs as it is, so that the programs can be tried out without a GPU.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import torch

from radialbeams.stored import JsonDict

Call = Callable[[], object]
NAMED = 100  # characters of a kernel's name
TRIED = 2  # rounds of anything on a CPU, where only a trial is wanted


def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _rounds(wanted: int) -> int:
    return wanted if torch.cuda.is_available() else TRIED


def give_back() -> None:
    """Returns memory that nothing uses to the device, on which other parts wait."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def captured(call: Call, warm_up: int = 3) -> Call:
    """The kernels of one call, launched as one graph. Whatever the call uses stays alive."""
    if not torch.cuda.is_available():
        call()
        return call
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(warm_up):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()

    def replay(_alive: tuple[object, ...] = (call, result)) -> None:
        graph.replay()

    return replay


def waited_for(call: Call, rounds: int) -> float:
    """Median seconds of one call, from its launch to its result."""
    times = []
    for number in range(_rounds(rounds) + 3):
        wait()
        started = time.perf_counter()
        call()
        wait()
        if number >= 3:
            times.append(time.perf_counter() - started)
    return statistics.median(times)


def back_to_back(call: Call, seconds: float = 0.3, most: int = 200) -> float:
    """Seconds of one call of many, launched without waiting; the median of five groups."""
    call()
    once = waited_for(call, 1)
    count = max(1, min(most, int(seconds / 5 / max(once, 1e-6))))
    groups = []
    for _ in range(_rounds(5)):
        wait()
        started = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        groups.append((time.perf_counter() - started) / count)
    return statistics.median(groups)


def in_turns(calls: Mapping[str, Call], rounds: int) -> dict[str, float]:
    """Median seconds of each call, round by round, each waited for."""
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(_rounds(rounds) + 2):
        for name, call in calls.items():
            wait()
            started = time.perf_counter()
            call()
            wait()
            if number > 1:
                spent[name].append(time.perf_counter() - started)
    return {name: statistics.median(times) for name, times in spent.items()}


def kernels(call: Call, most: int = 40) -> list[JsonDict]:
    """The kernels of one call, those that take longest first: name, count, microseconds."""
    if not torch.cuda.is_available():
        return []
    from torch._C._autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    call()
    wait()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        call()
        wait()
    rows = [
        {"kernel": event.key[:NAMED], "count": event.count, "us": round(event.device_time_total, 1)}
        for event in profiler.key_averages()
        if event.device_type == DeviceType.CUDA and event.device_time_total > 0
    ]
    rows.sort(key=lambda row: -row["us"])
    whole = {
        "kernel": "all kernels",
        "count": sum(row["count"] for row in rows),
        "us": round(sum(row["us"] for row in rows), 1),
    }
    return [whole, *rows[:most]]
