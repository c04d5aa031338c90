"""The parts of a training step on the CPU, as shares of the whole step."""

from __future__ import annotations

from typing import Any

from benchmarks import step
from benchmarks.clock import compared


def measure(quick: bool) -> dict[str, Any]:
    batch, steps = (32, 3) if quick else (128, 10)
    seconds = step.measure(batch, steps, 1)
    return {f"batch {batch}": compared({**seconds, "step": sum(seconds.values())}, "step", batch)}
