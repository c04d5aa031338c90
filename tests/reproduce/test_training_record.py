"""Files of trainings: read, written as they were, and still those of the trainings planned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import ROOT

from radialbeams.reproduce import registry
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.reproduce.training_record import (
    TrainingRecord,
    data_notes,
    read_training,
    tagged,
    write_training,
)
from radialbeams.reproduce.trainings import read

RUNS = ROOT / "results" / "runs"
EXPERIMENTS = sorted(path.name for path in RUNS.iterdir())


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_committed_files_are_read_and_written_as_they_are(experiment: str, tmp_path: Path) -> None:
    for place in sorted((RUNS / experiment).glob("*.json")):
        record = read_training(place)
        assert record.to_dict() == json.loads(place.read_text(encoding="utf-8"))
        assert record.name == place.stem
        assert record.finished is not bool(record.diverged)
    write_training(tmp_path / "again.json", record)
    assert (tmp_path / "again.json").read_bytes() == place.read_bytes()


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_committed_files_are_those_of_the_trainings_planned(experiment: str) -> None:
    """Defaults may change; the recipes of what was measured may not."""
    settings = ReproduceSettings(out=ROOT / "results")
    planned = {one.name: one for one in registry.find(experiment).trainings(settings)}
    for place in (RUNS / experiment).glob("*.json"):
        if experiment == "downstream" and place.stem not in planned:
            continue  # its data is not here
        assert read(planned[place.stem], place.parent) is not None


def test_a_training_that_diverged_has_no_measurements_in_its_file(tmp_path: Path) -> None:
    record = TrainingRecord("one", recipe={"seed": 3}, diverged="The loss is nan.")
    write_training(tmp_path / "one.json", record)
    written = json.loads((tmp_path / "one.json").read_text())
    assert "measured" not in written and "parameters" not in written
    again = read_training(tmp_path / "one.json")
    assert (again.finished, again.seed) == (False, 3)


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValueError, match="Unknown in the result of a training: loss"):
        TrainingRecord.from_dict({"name": "one", "loss": 2.0})


def test_trainings_are_found_by_their_tags_and_notes_are_told_once() -> None:
    records = {
        name: TrainingRecord(name, {"kind": kind, "share": 4}, data_note=note)
        for name, kind, note in (("a", "x", "Rounded."), ("b", "y", "Rounded."), ("c", "x", ""))
    }
    assert [one.name for one in tagged(records, kind="x")] == ["a", "c"]
    assert tagged(records, kind="x", share=1) == []
    assert data_notes(records.values()) == ["Rounded."]
