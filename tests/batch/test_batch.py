"""Batches: what is done to a file, workers that die, and runs that are killed and go on."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import face
from PIL import Image

from radialbeams import batch, images, zoo
from radialbeams.batch import JobSettings, Outcome, Plan, landing, pool
from radialbeams.batch.plan import BATCH
from radialbeams.batch.processing import output_of, undo_for, unturned_file
from radialbeams.batch.walk import RUN_FOLDER
from radialbeams.batch.worker import seconds_for
from radialbeams.cards import to_json
from radialbeams.posterior import Answer, rounded

FACES = "ring.lfw"
TURNING = JobSettings(FACES, turns=True, writes=True)


def everything(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


# --- what is done to one picture ---


def test_an_angle_is_rounded_before_anything_is_turned() -> None:
    assert [rounded(Answer(value)) for value in (12.344999, 359.996, 0.0)] == [12.34, 0.0, 0.0]


def done(data: bytes, answer: Answer, job: JobSettings) -> tuple[str, bytes]:
    undo = undo_for(answer, None, job)
    return undo.decision.action, output_of(data, undo, job)[0]


def test_a_quarter_turn_costs_nothing(tmp_path: Path) -> None:
    jpeg = face(tmp_path / "a.jpg", 0).read_bytes()
    png = face(tmp_path / "a.png", 0).read_bytes()
    with Image.open(tmp_path / "a.png") as picture:
        picture.save(tmp_path / "a.webp", lossless=True, icc_profile=b"0" * 131)
        picture.save(tmp_path / "a.tif")
        picture.save(tmp_path / "a.bmp")
        picture.quantize(256).save(tmp_path / "a.gif")
    others = [(tmp_path / f"a.{ending}").read_bytes() for ending in ("webp", "tif", "bmp", "gif")]
    for snap in ("auto", "90"):
        job = replace(TURNING, snap=snap)
        for data in (jpeg, png, *others):
            action, after = done(data, Answer(93.0, 0.9), job)
            assert action == "turned"
            expected = images.turn(images.read(data).image, -90)
            assert images.read(after).image.tobytes() == expected.tobytes()
    # The tag says it all: the compressed pixels are the very same bytes.
    scan = jpeg.index(b"\xff\xda")
    assert done(jpeg, Answer(93.0, 0.9), TURNING)[1].endswith(jpeg[scan:])
    with pytest.raises(images.ImageError, match="--snap 90"):
        done(png, Answer(93.0, 0.9), replace(TURNING, snap="90", exif=True))


def test_what_is_left_alone_keeps_its_bytes_unless_another_format_is_requested(
    tmp_path: Path,
) -> None:
    data = face(tmp_path / "a.jpg").read_bytes()
    assert done(data, Answer(40.0, 0.1), TURNING) == ("unsure", data)
    assert done(data, Answer(40.0, 0.1), replace(TURNING, format="jpeg")) == ("unsure", data)
    action, after = done(data, Answer(40.0, 0.1), replace(TURNING, format="png"))
    assert action == "unsure" and after.startswith(b"\x89PNG")


# --- runs ---


def carried_out(plan: Plan, job: JobSettings = TURNING, workers: int = 1) -> list[Outcome]:
    with batch.journaled(job, plan, workers) as run:
        return list(run.outcomes)


def test_workers_do_not_change_the_answers(tmp_path: Path) -> None:
    for number in range(BATCH + 5):
        face(tmp_path / "in" / f"{number}.png", 11 * number)
    found = []
    for workers in (1, 2):
        plan = Plan((str(tmp_path / "in"),), folder=tmp_path / f"out{workers}")
        found.append(carried_out(plan, workers=workers))
    assert [o.angle_ccw for o in found[0]] == [o.angle_ccw for o in found[1]]
    assert everything(tmp_path / "out1") == everything(tmp_path / "out2")


def test_a_bad_file_is_one_error_and_the_rest_goes_on(tmp_path: Path) -> None:
    good = face(tmp_path / "in" / "good.jpg")
    (tmp_path / "in" / "cut.jpg").write_bytes(good.read_bytes()[:900])
    (tmp_path / "in" / "empty.png").touch()
    (tmp_path / "in" / "folder.jpg").mkdir()
    sources = (str(tmp_path / "in"), str(tmp_path / "missing.jpg"))
    found = carried_out(Plan(sources, folder=tmp_path / "out"))
    errors = {Path(outcome.path).name: outcome.error for outcome in found}
    assert {name for name, error in errors.items() if error} == {
        "cut.jpg",
        "empty.png",
        "missing.jpg",
    }
    assert all("\n" not in error for error in errors.values() if error)
    assert list(everything(tmp_path / "out")) == ["in/good.jpg"]


# A worker that breaks down at some files: a crash, and a decoder that never returns.
BREAKING = """
import os, signal, time
from radialbeams.batch import worker
from radialbeams.canonicalizer import Canonicalizer
worker.SECONDS = 0.2
look = Canonicalizer.look

def breaking(self, path, **options):
    if "crash" in path:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "hang" in path:
        time.sleep(60)
    while "circles" in path:
        pass
    if "mistake" in path:
        raise ValueError("not meant to happen")
    return look(self, path, **options)

Canonicalizer.look = breaking
worker.main()
"""


@pytest.mark.serial  # its workers give up after fractions of a second
def test_a_worker_that_dies_is_replaced_and_its_file_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "COMMAND", [sys.executable, "-c", BREAKING])
    monkeypatch.setattr(pool, "FILE", 3.0)
    for name in ("1", "2-crash", "3", "4-hang", "5", "6-circles", "7-mistake", "8"):
        face(tmp_path / "in" / f"{name}.png")
    found = carried_out(Plan((str(tmp_path / "in"),), folder=tmp_path / "out"))
    errors = [outcome.error or "" for outcome in found]
    assert [number for number, error in enumerate(errors, 1) if error] == [2, 4, 6, 7]
    assert "SIGSEGV" in errors[1] and "exit code 1" in errors[6]
    assert all("far too long" in errors[place] for place in (3, 5))
    assert sorted(everything(tmp_path / "out")) == ["1.png", "3.png", "5.png", "8.png"]


def test_small_files_get_little_time_and_large_ones_enough(tmp_path: Path) -> None:
    small, large = tmp_path / "small.jpg", tmp_path / "large.jpg"
    small.write_bytes(bytes(10_000))
    large.write_bytes(bytes(5_000_000))
    assert seconds_for(str(small)) < 5
    assert seconds_for(str(large)) == 60


def test_a_pipe_that_is_named_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    with batch.unjournaled(
        JobSettings(FACES), Plan((str(tmp_path / "pipe.jpg"),), writes=False), 1
    ) as run:
        (outcome,) = run.outcomes
    assert outcome.error is not None and "pipe" in outcome.error


def test_a_damaged_model_leaves_nothing_behind(tmp_path: Path) -> None:
    shipped = zoo.find(FACES)
    card = tmp_path / "mine.json"
    card.write_text(json.dumps(to_json(shipped.card)))
    (tmp_path / "mine.onnx").write_bytes(shipped.onnx.read_bytes()[:-9])
    plan = Plan((str(face(tmp_path / "a.png")),), folder=tmp_path / "out")
    with pytest.raises(zoo.DamagedModel, match="sha256"):
        carried_out(plan, replace(TURNING, model=str(tmp_path / "mine.onnx")))
    assert not (tmp_path / "out").exists()
    digest = hashlib.sha256((tmp_path / "mine.onnx").read_bytes()).hexdigest()
    card.write_text(json.dumps({**to_json(shipped.card), "sha256": {"onnx": digest}}))
    with pytest.raises(batch.PoolError, match="not an ONNX model"):
        carried_out(plan, replace(TURNING, model=str(tmp_path / "mine.onnx")))
    assert everything(tmp_path / "out") == {}
    assert len(carried_out(plan)) == 1


def test_a_worker_imports_nothing_from_where_it_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    face(tmp_path / "a.png")
    (tmp_path / "hashlib.py").write_text("raise SystemExit('not meant to be imported')")
    monkeypatch.chdir(tmp_path)
    assert [outcome.action for outcome in carried_out(Plan(("a.png",)))] == ["turned"]


def test_workers_that_cannot_start_stop_the_run_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "COMMAND", [sys.executable, "-c", "raise SystemExit(3)"])
    plan = Plan((str(face(tmp_path / "a.png")),), folder=tmp_path / "out")
    with pytest.raises(batch.PoolError, match="exit code 3"):
        carried_out(plan)


def test_a_system_that_starts_no_process_stops_the_run_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "COMMAND", [str(tmp_path / "missing")])
    plan = Plan((str(face(tmp_path / "a.png")),), folder=tmp_path / "out")
    with pytest.raises(batch.PoolError, match=r"No worker could be started \(No such file"):
        carried_out(plan)


def test_in_place_nothing_is_turned_twice_if_killed_while_files_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        face(tmp_path / "calm" / f"{number}.png", 60 + number)
        face(tmp_path / "rough" / f"{number}.png", 60 + number)
    job = replace(TURNING, in_place=True)
    carried_out(Plan((str(tmp_path / "calm"),), in_place=True), job)

    land = landing.land
    landed: list[Outcome] = []

    def land_two(outcome: Outcome, part: str, rules: landing.Rules) -> Outcome:
        if len(landed) == 2:
            raise MemoryError("killed")
        landed.append(outcome)
        return land(outcome, part, rules)

    rough = Plan((str(tmp_path / "rough"),), in_place=True)
    monkeypatch.setattr(landing, "land", land_two)
    with pytest.raises(MemoryError):
        carried_out(rough, job)
    monkeypatch.undo()
    assert len(carried_out(rough, job)) == 4
    assert everything(tmp_path / "rough") == everything(tmp_path / "calm")


def test_a_run_that_goes_on_tries_again_what_failed_and_tells_what_is_new(tmp_path: Path) -> None:
    for number in range(BATCH + 2):
        face(tmp_path / "in" / f"{number}.png", number)
    bad = tmp_path / "in" / "0.png"
    good = bad.read_bytes()
    bad.write_bytes(good[:200])
    plan = Plan((str(tmp_path / "in"),), folder=tmp_path / "out")
    with pytest.raises(KeyboardInterrupt), batch.journaled(TURNING, plan, 1) as run:
        assert next(run.outcomes).error is not None
        raise KeyboardInterrupt
    bad.write_bytes(good)
    face(tmp_path / "in" / "new.png")
    with batch.journaled(TURNING, plan, 1) as run:
        assert run.added == 1
        found = list(run.outcomes)
    assert len(found) == BATCH + 2
    assert found[0].error is None and (tmp_path / "out" / "0.png").exists()


def interrupted(folder: Path) -> Plan:
    """A run that Ctrl-C ended after its first file."""
    for number in range(BATCH + 2):
        face(folder / "in" / f"{number}.png", number)
    plan = Plan((str(folder / "in"),), folder=folder / "out")
    with pytest.raises(KeyboardInterrupt), batch.journaled(TURNING, plan, 1) as run:
        next(run.outcomes)
        raise KeyboardInterrupt
    return plan


def test_a_damaged_journal_is_kept_until_it_is_forgotten_on_purpose(tmp_path: Path) -> None:
    plan = interrupted(tmp_path)
    damaged = tmp_path / "out" / RUN_FOLDER / "journal.jsonl"
    damaged.write_bytes(damaged.read_bytes() + b"nothing\n")
    for _ in range(2):
        with pytest.raises(batch.JournalError, match="--fresh"):
            carried_out(plan)


def test_a_plan_that_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    face(tmp_path / "src" / "sub" / "x.jpg")
    face(tmp_path / "src" / "sub" / "sub" / "x.jpg")
    before = everything(tmp_path)
    plan = Plan((str(tmp_path / "src" / "sub"),), folder=tmp_path / "src")
    for job in (replace(TURNING, overwrite=True), replace(TURNING, writes=False)):
        begin = batch.journaled if job.writes else batch.unjournaled
        with pytest.raises(batch.PlanError), begin(job, plan, 1):
            pass
    assert everything(tmp_path) == before


def test_an_interrupted_run_leaves_a_journal_and_nothing_half_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = interrupted(tmp_path)
    left = everything(tmp_path / "out")
    assert sum(name.endswith(".png") for name in left) == BATCH
    assert {Path(name).suffix for name in left} == {".png", ".jsonl"}
    with batch.journaled(TURNING, plan, 1) as run:
        assert (run.done_before, run.files) == (BATCH, BATCH + 2)
        assert len(list(run.outcomes)) == BATCH + 2
    assert len(everything(tmp_path / "out")) == BATCH + 2


def test_a_clear_picture_left_alone_is_laid_on_the_colour_that_was_named() -> None:
    clear = io.BytesIO()
    Image.new("RGBA", (8, 8), (0, 0, 0, 0)).save(clear, "PNG")
    laid = unturned_file(clear.getvalue(), JobSettings("ring.lfw", format="jpeg", fill="red"))
    red, green, blue = Image.open(io.BytesIO(laid)).getpixel((4, 4))  # type: ignore[misc]
    assert red > 250 and green < 5 and blue < 5
