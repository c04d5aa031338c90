"""What a reproduction is asked for: how much of it, from which data, into which folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

Value = TypeVar("Value")
# How much is done, of how much, and what goes on; who shows it works out when it will end.
Show = Callable[[float, float, str], None]

RESULTS = Path("results")
# Said before what small settings seem to show.
QUICK = "Quick settings answer nothing, they only show that it runs. "


def quietly(done: float, total: float, text: str) -> None:
    """Shows nothing."""


@dataclass(frozen=True)
class Settings:
    """The same for every experiment. Full settings are meant for one GPU."""

    quick: bool = False  # small data, few steps: minutes on two cores, and marked on the figures
    data: Path | None = None  # else $RADIALBEAMS_DATA
    out: Path | None = None  # else results/, and results/quick/ for quick settings
    seeds: int | None = None  # how many; else as many as the experiment says
    jobs: int = 1  # trainings at once
    devices: str = "auto"
    classifier: str | None = None  # for `downstream`: an .onnx or .pt2 file; else its own
    show: Show = field(default=quietly, compare=False)

    def __post_init__(self) -> None:
        for name, value in (("seeds", self.seeds), ("jobs", self.jobs)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1; got {value}.")

    @property
    def folder(self) -> Path:
        # Quick figures never replace the full ones.
        return self.out or (RESULTS / "quick" if self.quick else RESULTS)

    def runs(self, name: str) -> Path:
        """Where the trainings of an experiment leave their results, one file each."""
        return self.folder / "runs" / name

    def pick(self, *, quick: Value, full: Value) -> Value:
        return quick if self.quick else full

    def seeds_of(self, *, quick: int, full: int) -> range:
        return range(self.seeds or self.pick(quick=quick, full=full))
