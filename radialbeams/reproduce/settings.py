"""The settings of a reproduction: how long, from which data, into which folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

Value = TypeVar("Value")
# Receives the work done, the total work and the current task, and estimates the end.
Show = Callable[[float, float, str], None]

RESULTS = Path("results")
# The first sentence of a quick run's conclusion.
QUICK = "Quick settings only show that the experiment runs; they answer nothing. "


def quietly(done: float, total: float, text: str) -> None:
    """Shows nothing."""


@dataclass(frozen=True)
class ReproduceSettings:
    """The settings that all experiments share. Full settings are meant for one GPU."""

    quick: bool = False  # small data, few steps: minutes on two cores; the figures are marked
    data: Path | None = None  # default: $RADIALBEAMS_DATA
    out: Path | None = None  # default: results/, or results/quick/ for quick settings
    seeds: int | None = None  # how many; default: what the experiment sets
    jobs: int = 1  # trainings in parallel
    devices: str = "auto"
    classifier: str | None = (
        None  # for `downstream`: an .onnx or .pt2 file; default: EfficientNet-Lite0
    )
    show: Show = field(default=quietly, compare=False)

    def __post_init__(self) -> None:
        for name, value in (("seeds", self.seeds), ("jobs", self.jobs)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1; got {value}.")

    @property
    def folder(self) -> Path:
        # Quick results never replace full ones.
        return self.out or (RESULTS / "quick" if self.quick else RESULTS)

    def runs(self, name: str) -> Path:
        """The folder with the results of an experiment's trainings, one file each."""
        return self.folder / "runs" / name

    def pick(self, *, quick: Value, full: Value) -> Value:
        return quick if self.quick else full

    def seeds_of(self, *, quick: int, full: int) -> range:
        return range(self.seeds or self.pick(quick=quick, full=full))
