"""A run on a folder: resumed, lengthened, stopped early, calibrated, and honest about itself."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from radialbeams.cards import read as read_card
from radialbeams.training.own import (
    Status,
    TrainedRun,
    Watch,
    budget,
    finishing,
    fit_folder,
    upright,
)
from radialbeams.training.own.crooked import Crooked, Judged
from radialbeams.training.own.run import read_begun, write_begun
from radialbeams.training.own.scan import scan
from radialbeams.training.report import Canary
from radialbeams.training.runs import measure
from radialbeams.training.views import Views

TINY = {
    "batch": 8,
    "model": {
        **{"num_beams": 12, "beam_length": 12, "stem": 8, "stages": [8], "width": 16},
        "dilations": [1, 2],
    },
}


def picture(seed: int) -> Image.Image:
    """Noise under a bright upper half: no one can mistake the angle."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 60, (64, 64, 3), dtype=np.uint8)
    pixels[:32] += rng.integers(120, 190, dtype=np.uint8)
    return Image.fromarray(pixels)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("own") / "pictures"
    place.mkdir()
    for number in range(30):
        picture(number).save(place / f"{number}.png")
    (place / "broken.png").write_bytes(b"no image")
    return place


def train(folder: Path, out: Path, **options: Any) -> TrainedRun:
    limit = {} if "minutes" in options or "steps" in options else {"steps": 4}
    config = {**TINY, **options.pop("config", {})}
    return fit_folder(
        folder, out, start="scratch", devices="cpu", config=config, **limit, **options
    )


def no_export(stem: Path, out: Path) -> float:
    """It takes longer than all of a tiny run; the page on training is run with the real one."""
    out.write_bytes(b"")
    return 0.0


@pytest.fixture
def quick_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finishing, "export_run", no_export)


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainedRun:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(finishing, "export_run", no_export)
        return train(folder, tmp_path_factory.mktemp("runs") / "mine")


# --- what a run leaves ---


def test_a_run_leaves_a_model_with_calibration_thresholds_and_a_report(run: TrainedRun) -> None:
    assert run.report.is_file()
    card = read_card(run.folder / "model.json")
    assert card == run.card
    assert card.abstain is not None
    assert card.calibrated["n"] == card.metrics["leakfree"].evaluation.n
    assert (card.data.training_images, card.data.test_images, card.data.split_by) == (
        20,
        10,
        "image",
    )


def test_a_run_that_learned_nothing_is_not_trusted(run: TrainedRun) -> None:
    assert not run.trusted
    assert any("near chance" in reason for reason in run.card.trust)
    assert "not trust" in run.report.read_text(encoding="utf-8")


def test_evaluate_takes_the_images_that_were_held_out(run: TrainedRun, folder: Path) -> None:
    measured = measure(run.folder / "model", str(folder), seeds=1, devices="cpu")
    assert measured.evaluation.n == 10
    few = measure(run.folder / "model", str(folder), seeds=1, limit=4, devices="cpu")
    assert few.evaluation.n == 4
    assert (
        measure(
            run.folder / "model", str(folder), split="train", seeds=1, devices="cpu"
        ).evaluation.n
        == 20
    )


def test_choices_and_skipped_files_are_noted(folder: Path, tmp_path: Path, quick_end: None) -> None:
    notes: list[str] = []
    seen: list[Status] = []
    train(folder, tmp_path / "run", steps=1, watch=Watch(notes.append, seen.append))
    text = "\n".join(notes)
    assert "skipped broken.png" in text
    assert "20 to train on, 10 held out" in text
    assert "Views of 28 pixels from squares of 64" in text
    assert [one.stage for one in seen if one.step] == ["training"]
    assert seen[-1].stage == "writing the report"


# --- resumed, lengthened, stopped ---


def test_minutes_that_end_before_the_first_step_end_well(
    folder: Path, tmp_path: Path, quick_end: None
) -> None:
    run = train(folder, tmp_path / "run", minutes=1e-6)
    steps = run.card.training.steps_done
    assert steps <= 1
    assert not run.trusted
    assert f"trained for only {steps} step" in run.summary[0]
    again = train(folder, tmp_path / "run", minutes=1e-6)
    assert again.card == run.card


def test_a_finished_run_is_left_as_it_is(run: TrainedRun, folder: Path) -> None:
    before = (run.folder / "report.html").stat().st_mtime_ns
    notes: list[str] = []
    again = train(folder, run.folder, watch=Watch(note=notes.append))
    assert again == run
    assert (run.folder / "report.html").stat().st_mtime_ns == before
    assert any("is finished" in note for note in notes)


def test_a_finished_run_can_be_lengthened(folder: Path, tmp_path: Path, quick_end: None) -> None:
    out = tmp_path / "run"
    assert train(folder, out, steps=2).card.training.steps_done == 2
    assert train(folder, out, steps=5).card.training.steps_done == 5
    assert json.loads((out / "recipe.json").read_text())["steps"] == 5


def test_a_canary_is_measured_on_request_also_for_a_finished_run(
    folder: Path, tmp_path: Path, quick_end: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def canary(views: Views, parent_size: int, device: torch.device) -> Canary:
        asked.append(parent_size)
        return Canary(0.0123, -0.01, 0.04, "cnn", parent_size, 20_000, here=True)

    monkeypatch.setattr(finishing, "measure_here", canary)
    run = train(folder, tmp_path / "run")
    assert asked == []
    assert "0.012" not in run.report.read_text()
    for _ in range(2):
        run = train(folder, tmp_path / "run", canary=True)
        assert asked == [64]
    assert "0.012" in run.report.read_text()


def test_a_lengthened_run_by_minutes_trains_on(
    folder: Path, tmp_path: Path, quick_end: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    train(folder, out, minutes=1e-6)
    begun = read_begun(out)
    assert begun is not None and begun.minutes == 1e-6
    monkeypatch.setattr(budget, "training_minutes", lambda *_: 1 / 60)
    monkeypatch.setattr(upright, "TRAINING", 0.01)
    longer = train(folder, out, minutes=1.0)
    assert longer.card.training.steps_done > 1


def test_a_folder_that_changed_is_refused(folder: Path, tmp_path: Path, quick_end: None) -> None:
    out = tmp_path / "run"
    train(folder, out, steps=1)
    begun = read_begun(out)
    assert begun is not None
    write_begun(out, dataclasses.replace(begun, images="0" * 64))
    with pytest.raises(ValueError, match="files were added, removed or changed"):
        train(folder, out, steps=2)


def test_another_start_in_a_run_is_refused(run: TrainedRun, folder: Path) -> None:
    with pytest.raises(ValueError, match="was begun from scratch"):
        fit_folder(folder, run.folder, start="ring", steps=9, config=TINY)


def test_an_unknown_start_is_refused_before_the_folder_is_scanned(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"got 'rong'.*Did you mean ring\?"):
        fit_folder(tmp_path / "nowhere", tmp_path / "run", start="rong")
    with pytest.raises(ValueError, match="trained on leak-free views"):
        fit_folder(tmp_path / "nowhere", tmp_path / "run", start="bic.lfw")
    assert not (tmp_path / "run").exists()


def test_a_start_that_training_makes_worse_is_kept(
    folder: Path, run: TrainedRun, tmp_path: Path, quick_end: None
) -> None:
    ruinous = {**TINY, "learning_rate": 1.0, "average": 0.0, "clip": 0.0}
    out = tmp_path / "run"
    second = fit_folder(folder, out, start=str(run.folder), steps=6, config=ruinous, devices="cpu")
    before, after = (load_file(place / "model.safetensors") for place in (run.folder, out))
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert second.summary[0].startswith(
        f"The model has the weights of its start ({run.card.name}),"
    )
    assert "6 steps of training were discarded" in second.summary[0]
    assert "6 steps of training" in second.report.read_text(encoding="utf-8").split("<dl>")[0]
    assert "training did not improve on it" in second.card.summary
    assert second.card.training is not None and second.card.training.steps_done == 6


def test_a_run_starts_from_another(
    run: TrainedRun, folder: Path, tmp_path: Path, quick_end: None
) -> None:
    config = {"batch": 8}
    out = tmp_path / "next"
    second = fit_folder(folder, out, start=str(run.folder), steps=1, config=config, devices="cpu")
    assert second.card.training.start.sha256 == run.card.sha256.safetensors
    log = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    measured = [line["step"] for line in map(json.loads, log) if "held_out" in line]
    assert measured == [0, 1]  # the start's error stands beside the result's


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"minutes": 1.0, "steps": 5}, "minutes or steps as the length"),
        ({"minutes": -1.0}, "minutes must be above 0"),
        ({"config": {"nonsense": 1}}, "Unknown in a file of settings: nonsense"),
        ({"config": {"data": "lfw"}}, "data follows from the folder"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_read(
    options: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=sentence):
        train(tmp_path / "nowhere", tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_a_refused_run_leaves_no_folder_unless_it_was_there_before(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    too_wide = {"model": {"width": 0}}
    with pytest.raises(ValueError, match="width"):  # after the folder was scanned and the start set
        train(folder, out, config=too_wide)
    assert not out.exists()
    few = tmp_path / "few"
    few.mkdir()
    picture(0).save(few / "0.png")
    with pytest.raises(ValueError, match="images"):
        train(few, out)
    assert not out.exists()
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"files that are not of a run \(mine.txt\)\. Name a new"):
        train(folder, out)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]
    (out / "mine.txt").rename(out / ".folder.json.part")  # as a run leaves it that is killed
    with pytest.raises(ValueError, match="width"):
        train(folder, out, config=too_wide)


def test_crooked_images_are_listed_and_with_realign_corrected(
    run: TrainedRun, folder: Path, tmp_path: Path, quick_end: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    crooked = (Crooked(3, 90.0, 0.9), Crooked(5, -45.0, 0.8))
    nothing = Judged(np.zeros(30), np.ones(30))
    monkeypatch.setattr(upright, "judge", lambda *_, **__: nothing)
    monkeypatch.setattr(upright, "listed", lambda _: crooked)
    monkeypatch.setattr(upright, "JUDGING", 100.0)
    notes: list[str] = []
    out = tmp_path / "run"
    options = {"start": str(run.folder), "config": {"batch": 8}, "devices": "cpu"}
    listed = fit_folder(folder, out, steps=1, watch=Watch(notes.append), **options)
    assert any("2 images are not upright: listed" in note for note in notes)
    page = listed.report.read_text(encoding="utf-8")
    corrected = fit_folder(folder, out, steps=2, realign=True, **options)
    assert corrected.card.training.steps_done == 2
    begun = read_begun(out)
    assert begun is not None and begun.realigned
    names = [image.path for image in scan(folder).images]
    assert names[3] in page and names[5] in page


def test_networks_that_know_too_little_blame_no_image() -> None:
    angles = np.zeros(100)
    angles[:10] = 90.0
    sure = np.where(angles > 0, 0.95, 1.0)
    found = tuple(Crooked(i, 90.0, 0.95) for i in range(10))
    assert upright.is_telling(Judged(angles, sure), found)
    angles[10:30] = 120.0
    assert not upright.is_telling(Judged(angles, sure), found)


@pytest.mark.long
@pytest.mark.serial
def test_the_minutes_are_kept_with_the_report(folder: Path, tmp_path: Path) -> None:
    started = time.monotonic()
    train(folder, tmp_path / "run", minutes=1.0)
    assert time.monotonic() - started < 66
