"""An experiment: the paper's claim, its trainings, measurements, conclusions and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from radialbeams.reproduce.records import Record as Record
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.reproduce.training_record import Records as Records
from radialbeams.reproduce.trainings import PlannedTraining
from radialbeams.stored import JsonFields

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Our numbers by name, and what they mean in a few sentences.
Conclusion = tuple[JsonFields, str]


@dataclass(frozen=True)
class Finding:
    """The result of an experiment. `ours` has the keys of the paper's numbers, and more."""

    ours: JsonFields
    why: str  # why our numbers differ from the paper's, or that they agree
    data: JsonFields  # behind the figures, ready for JSON
    seeds: Sequence[int] = ()  # of random draws outside the trainings
    seconds: float = 0.0  # spent by an earlier call that was interrupted


def no_trainings(settings: ReproduceSettings) -> list[PlannedTraining]:
    return []


@dataclass(frozen=True)
class Experiment:
    name: str
    claim: str  # of the paper, in our words
    paper: JsonFields  # its numbers
    run: Callable[[ReproduceSettings, Records], Finding]
    draw: Callable[[Record], dict[str, Figure]]  # suffix of the file → figure, from JSON alone
    conclude: Callable[[Record], Conclusion]  # from the finding's data alone
    trainings: Callable[[ReproduceSettings], list[PlannedTraining]] = field(default=no_trainings)
