"""Counts and durations, in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SIZES = (1, 2, 4, 8)


class Histogram:
    """Counts values in buckets with these upper bounds."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        below = 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            below += count
            yield f'{name}_bucket{{{labels}{"," if labels else ""}le="{bound}"}} {below}'
        wrapped = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{wrapped} {self.total:.6f}"
        yield f"{name}_count{wrapped} {below}"


class Metrics:
    def __init__(self) -> None:
        self.restarts = 0
        self.begun = 0  # requests received, including those not yet answered
        self._requests: Counter[tuple[str, int]] = Counter()
        self._files: Counter[str] = Counter()
        self._seconds: dict[str, Histogram] = {}
        self._batches = Histogram(SIZES)

    @property
    def answered(self) -> int:
        return self._requests.total()

    def request(self, route: str, status: int, seconds: float) -> None:
        self._requests[route, status] += 1
        self._seconds.setdefault(route, Histogram(SECONDS)).add(seconds)

    def file(self, outcome: str) -> None:
        self._files[outcome] += 1

    def batch(self, size: int) -> None:
        self._batches.add(size)

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        return "\n".join(self._lines(gauges)) + "\n"

    def _lines(self, gauges: Mapping[str, tuple[str, float]]) -> Iterator[str]:
        yield from _head("requests_total", "counter", "Answered requests.")
        for (route, status), count in sorted(self._requests.items()):
            yield f'radialbeams_requests_total{{route="{route}",status="{status}"}} {count}'
        yield from _head("files_total", "counter", "Files in requests, by action or error code.")
        for outcome, count in sorted(self._files.items()):
            yield f'radialbeams_files_total{{outcome="{outcome}"}} {count}'
        yield from _head("request_seconds", "histogram", "Time until the response is sent.")
        for route, histogram in sorted(self._seconds.items()):
            yield from histogram.lines("radialbeams_request_seconds", f'route="{route}"')
        yield from _head("batch_size", "histogram", "Files in a batch for a worker.")
        yield from self._batches.lines("radialbeams_batch_size")
        yield from _head("worker_restarts_total", "counter", "Workers that died and were replaced.")
        yield f"radialbeams_worker_restarts_total {self.restarts}"
        for name, (meaning, value) in gauges.items():
            yield from _head(name, "gauge", meaning)
            yield f"radialbeams_{name} {value:g}"


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP radialbeams_{name} {meaning}"
    yield f"# TYPE radialbeams_{name} {kind}"
