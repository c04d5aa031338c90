"""Progress as plain lines, for logs and pipes, where a bar could not move."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 10.0  # between two lines


class PlainProgress:
    """Prints a line at the first step, then at intervals, with an estimate of the time left."""

    def __init__(self, steps: int, say: Callable[[str], None]) -> None:
        self.steps, self.say = steps, say
        self.started = time.monotonic()
        self.first: int | None = None  # a resumed run does not begin at 0
        self.at = -SECONDS

    def show(self, step: int, text: str) -> None:
        spent = time.monotonic() - self.started
        if self.first is None:
            self.first = step
        if spent - self.at < SECONDS:
            return
        self.at = spent
        line = f"{text}, {step:,} of {self.steps:,}"
        if step > self.first:
            left = spent * (self.steps - step) / (step - self.first)
            line += f", about {clock(left)} left"
        self.say(line)


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
