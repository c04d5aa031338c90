"""What an experiment is: the paper's claim, trainings where it needs some, a finding, figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from radialbeams.reproduce.settings import Settings
from radialbeams.reproduce.trainings import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = dict[str, Any]
# The results of trainings, by the training's name.
Records = Mapping[str, Record]


@dataclass(frozen=True)
class Finding:
    """What an experiment found. `ours` has the keys of the paper's numbers where it has any."""

    ours: Mapping[str, Any]
    why: str  # one sentence: why ours differ from the paper's, or that they do not
    data: Mapping[str, Any]  # behind the figures, ready for JSON
    seeds: Sequence[int] = ()  # of what was drawn outside of trainings
    seconds: float = 0.0  # that parts of it took in an earlier call, which was interrupted


def no_trainings(settings: Settings) -> list[Training]:
    return []


@dataclass(frozen=True)
class Experiment:
    name: str
    claim: str  # of the paper, in our words
    paper: Mapping[str, Any]  # its numbers
    run: Callable[[Settings, Records], Finding]
    draw: Callable[[Record], dict[str, Figure]]  # suffix of the file → figure, from JSON alone
    trainings: Callable[[Settings], list[Training]] = field(default=no_trainings)
