"""Batches: the plan, the journal, workers that die, and runs that are killed and go on."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from killing import compare
from PIL import Image

from radialbeams import batch, images
from radialbeams.answers import Answer
from radialbeams.batch import Job, Outcome, Plan, crew, journal, plan_for
from radialbeams.batch.job import action_for, angle_of, made
from radialbeams.batch.journal import FOLDER, Journal, JournalError, part_of
from radialbeams.batch.plan import BATCH, Item, PlanError, batches
from radialbeams.demo import PICTURES

FACES = "ring.lfw"
TURNING = Job(FACES, turns=True, writes=True)


@cache
def astronaut() -> Image.Image:
    with Image.open(PICTURES / "astronaut.webp") as picture:
        return picture.convert("RGB").resize((128, 128), Image.Resampling.LANCZOS)


def face(path: Path, turn: float = 40) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    astronaut().rotate(turn, Image.Resampling.BICUBIC).save(path)
    return path


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def planned(plan: Plan, folder: Path) -> list[tuple[str, str | None]]:
    """Below `folder`, as they come."""
    return [
        (os.path.relpath(item.path, folder), item.out and os.path.relpath(item.out, folder))
        for item in plan.items()
    ]


def outs(plan: Plan, folder: Path) -> list[str | None]:
    return [out for _, out in planned(plan, folder)]


def everything(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


# --- the plan ---


def test_a_folder_is_taken_in_natural_order_without_what_is_hidden(tmp_path: Path) -> None:
    touch(tmp_path, "in/10.jpg", "in/2.JPG", "in/b/1.png", "in/a.webp", "in/notes.txt")
    touch(tmp_path, "in/.hidden.jpg", "in/.cache/3.jpg")
    plan = Plan((str(tmp_path / "in"),), folder=tmp_path / "out")
    assert planned(plan, tmp_path) == [
        ("in/2.JPG", "out/2.JPG"),
        ("in/10.jpg", "out/10.jpg"),
        ("in/a.webp", "out/a.webp"),
        ("in/b/1.png", "out/b/1.png"),
    ]


def test_a_file_that_is_named_is_always_tried(tmp_path: Path) -> None:
    touch(tmp_path, "notes.txt")
    names = (str(tmp_path / "notes.txt"), str(tmp_path / "missing.jpg"))
    assert [item.path for item in Plan(names, writes=False).items()] == list(names)


def test_equal_names_never_collide(tmp_path: Path) -> None:
    touch(tmp_path, "a/x.jpg", "b/x.jpg", "b/X.JPG", "b/x-2.jpg", "c/x.png")
    sources = tuple(str(tmp_path / name) for name in "abc")
    plan = Plan(sources, folder=tmp_path / "out", format="jpeg")
    found = outs(plan, tmp_path)
    assert len({str(out).casefold() for out in found}) == 5
    assert found == outs(plan, tmp_path)
    assert found[0] == "out/x.jpg"


def test_a_format_changes_the_ending_only_where_it_does_not_fit(tmp_path: Path) -> None:
    touch(tmp_path, "in/a.JPEG", "in/b.png")
    plan = Plan((str(tmp_path / "in"),), folder=tmp_path / "out", format="jpeg")
    assert outs(plan, tmp_path) == ["out/a.JPEG", "out/b.jpg"]


def test_outputs_inside_the_inputs_are_not_read_again(tmp_path: Path) -> None:
    touch(tmp_path, "in/1.jpg", "in/out/1.jpg")
    plan = Plan((str(tmp_path / "in"),), folder=tmp_path / "in" / "out")
    assert planned(plan, tmp_path) == [("in/1.jpg", "in/out/1.jpg")]
    touch(tmp_path, "in/1-upright.jpg", "in/bolt-upright.jpg")
    beside = Plan((str(tmp_path / "in"),))
    assert ("in/1.jpg", "in/1-upright.jpg") in planned(beside, tmp_path)
    assert "in/1-upright.jpg" not in [path for path, _ in planned(beside, tmp_path)]
    assert "in/bolt-upright.jpg" in [path for path, _ in planned(beside, tmp_path)]


def test_in_place_a_file_named_twice_is_turned_once(tmp_path: Path) -> None:
    touch(tmp_path, "in/1.jpg")
    (tmp_path / "in" / "link.jpg").symlink_to("1.jpg")
    sources = (str(tmp_path / "in"), str(tmp_path / "in" / "1.jpg"))
    assert planned(Plan(sources, in_place=True), tmp_path) == [("in/1.jpg", "in/1.jpg")]


def test_one_file_can_be_given_the_name_of_its_output(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg")
    source, out = str(tmp_path / "a.jpg"), tmp_path / "b.png"
    assert plan_for([source], str(out)) == Plan((source,), file=out, format="png")
    assert plan_for([source], str(tmp_path / "b")).folder == tmp_path / "b"
    assert plan_for([source, source], str(out)).folder == out


def test_a_plan_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    touch(tmp_path, "in/a.jpg")
    folder, source = str(tmp_path / "in"), str(tmp_path / "in" / "a.jpg")
    for sources, out, options, words in (
        ([folder], folder, {}, "holds the inputs themselves"),
        ([source], folder, {}, "holds the inputs themselves"),
        ([source], source, {}, "is the input itself"),
        ([source], "x.png", {"in_place": True}, "leave out one of the two"),
        ([source], None, {"in_place": True, "format": "png"}, "keeps its format"),
        ([source], "x.gif", {}, "Formats are jpeg, png"),
        ([folder], source, {}, "is a file"),
    ):
        with pytest.raises(PlanError, match=words):
            plan_for(sources, out, **options)  # type: ignore[arg-type]


def test_the_journal_has_a_home_that_exists(tmp_path: Path) -> None:
    source = str(face(tmp_path / "in" / "a.jpg"))
    assert Plan((source,)).home == tmp_path / "in"
    assert Plan((str(tmp_path / "nowhere" / "b.jpg"), source)).home == tmp_path / "in"
    assert Plan((str(tmp_path / "nowhere" / "b.jpg"),)).home == Path()
    assert Plan((source,), folder=tmp_path / "new").home == tmp_path / "new"


def test_batches_are_always_cut_at_the_same_places() -> None:
    items = [Item(str(number)) for number in range(2 * BATCH + 3)]
    assert [len(batch) for batch in batches(items)] == [BATCH, BATCH, 3]
    assert [item for batch in batches(items) for item in batch] == items


# --- what is done to one picture ---


@pytest.mark.parametrize(
    ("angle", "confidence", "options", "action"),
    [
        (40.0, 0.9, {}, "turned"),
        (40.0, 0.4, {}, "unsure"),
        (40.0, None, {}, "turned"),  # the paper's network knows no confidence
        (0.6, 0.9, {}, "left"),
        (359.4, 0.9, {}, "left"),
        (359.4, 0.9, {"min_angle": 0.5}, "turned"),
        (44.0, 0.9, {"snap": True}, "left"),
        (46.0, 0.9, {"snap": True}, "turned"),
        (316.0, 0.9, {"snap": True}, "left"),
    ],
)
def test_what_is_done_follows_from_the_answer(
    angle: float, confidence: float | None, options: dict[str, float], action: str
) -> None:
    assert action_for(Answer(angle, confidence), replace(TURNING, **options)) == action


def test_an_angle_is_rounded_before_anything_is_turned() -> None:
    assert [angle_of(Answer(value)) for value in (12.344999, 359.996, 0.0)] == [12.34, 0.0, 0.0]


def test_a_quarter_turn_costs_nothing(tmp_path: Path) -> None:
    snap = replace(TURNING, snap=True)
    jpeg = face(tmp_path / "a.jpg", 0).read_bytes()
    png = face(tmp_path / "a.png", 0).read_bytes()
    with Image.open(tmp_path / "a.png") as picture:
        picture.save(tmp_path / "a.webp", lossless=True, icc_profile=b"0" * 131)
        picture.save(tmp_path / "a.tif")
        picture.save(tmp_path / "a.bmp")
    others = [(tmp_path / f"a.{ending}").read_bytes() for ending in ("webp", "tif", "bmp")]
    for data in (jpeg, png, *others):
        action, after = made(data, Answer(93.0, 0.9), snap)
        assert action == "turned"
        expected = images.turn(images.read(data).image, -90)
        assert images.read(after).image.tobytes() == expected.tobytes()
    # The tag says it all: the compressed pixels are the very same bytes.
    scan = jpeg.index(b"\xff\xda")
    assert made(jpeg, Answer(93.0, 0.9), snap)[1].endswith(jpeg[scan:])
    with pytest.raises(images.ImageError, match="--snap 90"):
        made(png, Answer(93.0, 0.9), replace(snap, exif=True))


def test_what_is_left_alone_keeps_its_bytes_unless_another_format_is_asked_for(
    tmp_path: Path,
) -> None:
    data = face(tmp_path / "a.jpg").read_bytes()
    assert made(data, Answer(40.0, 0.1), TURNING) == ("unsure", data)
    assert made(data, Answer(40.0, 0.1), replace(TURNING, format="jpeg")) == ("unsure", data)
    action, after = made(data, Answer(40.0, 0.1), replace(TURNING, format="png"))
    assert action == "unsure" and after.startswith(b"\x89PNG")


# --- the journal ---


SETTINGS = {"version": "1", "fill": None}


@pytest.fixture
def two_done(tmp_path: Path) -> Iterator[tuple[Journal, list[Outcome]]]:
    """A journal with two batches of one output each, the first in its place."""
    kept = Journal(tmp_path, SETTINGS)
    kept.fix_plan(Item(f"{n}.jpg", str(tmp_path / f"{n}.jpg")) for n in range(3 * BATCH))
    outcomes = []
    for number in (0, BATCH):
        out = str(tmp_path / f"{number}.jpg")
        journal.stage(b"picture", out)
        digest = "f55e6ad8a2b1bd7e66b43e2e7a8c8a2d0d1c5bd0e3ef6f15bdcd4aa09bb7b5b6"
        outcomes.append(Outcome(f"{number}.jpg", out, action="turned", sha256=digest))
        kept.record([outcomes[-1]])
    yield kept, outcomes
    kept.close()


def reopened(tmp_path: Path, kept: Journal) -> Journal:
    kept.close()
    return Journal(tmp_path, SETTINGS)


def test_a_journal_remembers_what_is_done(
    tmp_path: Path, two_done: tuple[Journal, list[Outcome]]
) -> None:
    kept, outcomes = two_done
    part = part_of(outcomes[1].out or "")
    os.replace(outcomes[1].out or "", part)  # as if killed before it took its place
    again = reopened(tmp_path, kept)
    assert again.fix_plan([]) == 3 * BATCH  # an earlier plan stands
    assert again.recover() == 2
    assert list(again.done()) == [[outcome] for outcome in outcomes]
    assert Path(outcomes[1].out or "").read_bytes() == b"picture"
    assert not os.path.exists(part)
    assert [batch[0].path for batch in again.batches(2)] == [f"{2 * BATCH}.jpg"]
    again.finish()
    assert not (tmp_path / FOLDER).exists()


def test_a_torn_last_line_counts_for_nothing(
    tmp_path: Path, two_done: tuple[Journal, list[Outcome]]
) -> None:
    kept, _ = two_done
    path = tmp_path / FOLDER / "journal.jsonl"
    path.write_bytes(path.read_bytes() + b'[{"path": "32.jpg", "ou')
    again = reopened(tmp_path, kept)
    assert again.recover() == 2
    assert path.read_bytes().endswith(b"]\n")
    again.close()


def test_an_output_that_someone_removed_before_it_was_in_place_is_told(
    tmp_path: Path, two_done: tuple[Journal, list[Outcome]]
) -> None:
    kept, outcomes = two_done
    os.unlink(outcomes[1].out or "")
    again = reopened(tmp_path, kept)
    again.recover()
    (_, [lost]) = again.done()
    assert lost.error is not None and "removed" in lost.error
    again.close()


def test_what_was_made_but_never_noted_is_removed(
    tmp_path: Path, two_done: tuple[Journal, list[Outcome]]
) -> None:
    kept, _ = two_done
    journal.stage(b"half", str(tmp_path / f"{2 * BATCH}.jpg"))
    again = reopened(tmp_path, kept)
    again.recover()
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(journal.PART)]
    again.close()


def test_other_settings_are_refused_with_what_differs(
    tmp_path: Path, two_done: tuple[Journal, list[Outcome]]
) -> None:
    two_done[0].close()
    with pytest.raises(JournalError, match=r"fill was None, is white.*--fresh"):
        Journal(tmp_path, {**SETTINGS, "fill": "white"})
    fresh = Journal(tmp_path, {**SETTINGS, "fill": "white"}, fresh=True)
    assert fresh.fix_plan([Item("a.jpg", "b.jpg")]) == 1
    assert fresh.recover() == 0
    fresh.close()


def test_two_runs_cannot_share_a_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, two_done: tuple[Journal, list[Outcome]]
) -> None:
    monkeypatch.setattr(journal, "PATIENCE", 0.1)
    with pytest.raises(JournalError, match="Another run is at work"):
        Journal(tmp_path, SETTINGS)


# --- runs ---


def carried_out(plan: Plan, job: Job = TURNING, workers: int = 1) -> list[Outcome]:
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
    assert list(everything(tmp_path / "out")) == ["good.jpg"]


# A worker that breaks down at some files: a crash, and a decoder that never returns.
BREAKING = """
import os, signal, time
from radialbeams.batch import worker
from radialbeams.canonicalizer import Canonicalizer
worker.SECONDS_A_FILE = 1
view = Canonicalizer.view

def breaking(self, path, **options):
    if "crash" in path:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "hang" in path:
        time.sleep(60)
    return view(self, path, **options)

Canonicalizer.view = breaking
worker.main()
"""


def test_a_worker_that_dies_is_replaced_and_its_file_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "COMMAND", [sys.executable, "-c", BREAKING])
    for name in ("1", "2-crash", "3", "4-hang", "5"):
        face(tmp_path / "in" / f"{name}.png")
    found = carried_out(Plan((str(tmp_path / "in"),), folder=tmp_path / "out"))
    errors = [outcome.error or "" for outcome in found]
    assert [bool(error) for error in errors] == [False, True, False, True, False]
    assert "SIGSEGV" in errors[1] and "longer than a minute" in errors[3]
    assert sorted(everything(tmp_path / "out")) == ["1.png", "3.png", "5.png"]


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
    monkeypatch.setattr(crew, "COMMAND", [sys.executable, "-c", "raise SystemExit(3)"])
    plan = Plan((str(face(tmp_path / "a.png")),), folder=tmp_path / "out")
    with pytest.raises(batch.CrewError, match="exit code 3"):
        carried_out(plan)


def test_in_place_nothing_is_turned_twice_if_killed_while_files_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        face(tmp_path / "calm" / f"{number}.png", 60 + number)
        face(tmp_path / "rough" / f"{number}.png", 60 + number)
    job = replace(TURNING, in_place=True)
    carried_out(Plan((str(tmp_path / "calm"),), in_place=True), job)

    land, landed = journal._land, []

    def land_two(outcome: Outcome) -> bool:
        if len(landed) == 2:
            raise MemoryError("killed")
        landed.append(outcome)
        return land(outcome)

    rough = Plan((str(tmp_path / "rough"),), in_place=True)
    monkeypatch.setattr(journal, "_land", land_two)
    with pytest.raises(MemoryError):
        carried_out(rough, job)
    monkeypatch.undo()
    assert len(carried_out(rough, job)) == 4
    assert everything(tmp_path / "rough") == everything(tmp_path / "calm")


def test_an_interrupted_run_leaves_a_journal_and_nothing_half_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(BATCH + 2):
        face(tmp_path / "in" / f"{number}.png", number)
    plan = Plan((str(tmp_path / "in"),), folder=tmp_path / "out")
    with pytest.raises(KeyboardInterrupt), batch.journaled(TURNING, plan, 1) as run:
        next(run.outcomes)
        raise KeyboardInterrupt
    left = everything(tmp_path / "out")
    assert sum(name.endswith(".png") for name in left) == BATCH
    assert {Path(name).suffix for name in left} == {".png", ".jsonl"}
    with batch.journaled(TURNING, plan, 1) as run:
        assert (run.done_before, run.files) == (BATCH, BATCH + 2)
        assert len(list(run.outcomes)) == BATCH + 2
    assert len(everything(tmp_path / "out")) == BATCH + 2


@pytest.mark.parametrize("in_place", [False, True], ids=["to a folder", "in place"])
def test_killed_at_random_moments_it_comes_to_the_same_end(in_place: bool) -> None:
    calm, rough = compare(150, 2 if in_place else 3, in_place=in_place, seed=7)
    assert rough.kills >= 1
    assert rough.files == calm.files
    assert rough.lines == calm.lines
    assert len(json.loads(f"[{','.join(calm.lines.splitlines())}]")) == 150
    assert not [name for name in rough.files if "/." in name]
