"""The stored record of a finished training: one frozen class, one reader, one writer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from radialbeams.reproduce.records import Record, write_record
from radialbeams.stored import JsonFields

LONG = ("recipe", "measured", "curve", "validations")  # keys whose parts take a line each


@dataclass(frozen=True)
class TrainingRecord:
    """One training: its settings, its cost and its measurements."""

    name: str = ""
    tags: Record = field(default_factory=dict)  # identify the training in its experiment
    recipe: Record = field(default_factory=dict)  # as written, of any version
    images: int | None = None  # how many of the training split were requested; None: all
    held_out: int | None = None
    training_images: int = 0  # how many were used
    hardware: str = "cpu"
    data_note: str = ""  # how the images differ from the originals
    diverged: str = ""  # the error, if the loss was no longer finite
    measured: Record = field(default_factory=dict)  # by the experiment; empty if it diverged
    parameters: int | None = None
    seconds: float = 0.0
    curve: dict[str, list[float]] = field(default_factory=dict)  # training losses by step
    validations: list[Record] = field(default_factory=list)  # errors during training

    @property
    def finished(self) -> bool:
        """False if it diverged."""
        return bool(self.measured)

    @property
    def seed(self) -> int:
        return int(self.recipe["seed"])

    @property
    def losses(self) -> list[float]:
        """The circle losses in training, at `steps`."""
        return self.curve["circle_loss"]

    @property
    def steps(self) -> list[float]:
        return self.curve["step"]

    def errors(self, group: str = "so2") -> Record:
        """The errors on held-out images, for angles of a group: `so2` or `cyclic`."""
        errors: Record = self.measured[group]
        return errors

    def validated(self, group: str) -> list[float]:
        """The circle losses on held-out images during training."""
        return [point[group]["circle_loss"] for point in self.validations]

    @property
    def validated_at(self) -> list[int]:
        return [point["step"] for point in self.validations]

    @classmethod
    def from_dict(cls, values: JsonFields) -> TrainingRecord:
        known = [entry.name for entry in fields(cls)]
        if unknown := sorted(set(values) - set(known)):
            raise ValueError(
                f"Unknown in the result of a training: {', '.join(unknown)}. "
                f"Known: {', '.join(known)}."
            )
        return cls(**values)

    def to_dict(self) -> Record:
        """The fields as stored in files, without those that do not apply to this training."""
        left_out = {name for name in ("data_note", "diverged") if not getattr(self, name)}
        left_out |= {name for name in ("measured", "parameters") if not self.finished}
        return {name: value for name, value in vars(self).items() if name not in left_out}


# The results of trainings, by the training's name.
Records = Mapping[str, TrainingRecord]


def read_training(path: Path) -> TrainingRecord:
    return TrainingRecord.from_dict(json.loads(path.read_text(encoding="utf-8")))


def write_training(path: Path, record: TrainingRecord) -> None:
    write_record(path, record.to_dict(), LONG)


def tagged(records: Records, **tags: Any) -> list[TrainingRecord]:
    """The trainings with these tags; they may have others too."""
    return [
        record
        for record in records.values()
        if all(record.tags.get(name) == value for name, value in tags.items())
    ]


def data_notes(records: Iterable[TrainingRecord]) -> list[str]:
    """How the images of these trainings differ from the originals, each note once."""
    return sorted({record.data_note for record in records if record.data_note})
