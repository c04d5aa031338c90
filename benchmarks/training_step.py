"""The parts of a training step on the CPU, as shares of the whole step."""

from __future__ import annotations

from benchmarks import step
from benchmarks.clock import compared
from radialbeams.stored import JsonDict


def measure(quick: bool) -> JsonDict:
    batch, steps = (32, 3) if quick else (128, 10)
    seconds = step.measure(batch, steps, 1)
    return {f"batch {batch}": compared({**seconds, "step": sum(seconds.values())}, "step", batch)}
