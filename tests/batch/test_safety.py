"""Whole runs under bad conditions: edits, kills, overlaps, planted files, folders that resist."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

import radialbeams
from radialbeams import batch, zoo
from radialbeams.batch import JobSettings, JournalError, Outcome, Plan, PlanError
from radialbeams.batch.plan import BATCH
from radialbeams.demo import PICTURES

COMMAND = [sys.executable, "-c", "from radialbeams.cli import run; run()", "upright"]
OPTIONS = ("--model", "ring.lfw", "--min-confidence", "0", "--workers", "1")
FIXTURES = Path(__file__).parent / "fixtures" / "journals"
TURNING = JobSettings("ring.lfw", turns=True, writes=True, min_confidence=0)
IN_PLACE = replace(TURNING, in_place=True)
RUN = ".radialbeams-run"


def face(path: Path, turn: float = 40, size: int = 96) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(PICTURES / "astronaut.webp") as picture:
        small = picture.convert("RGB").resize((size, size))
    small.rotate(turn, Image.Resampling.BICUBIC).save(path)
    return path


def parts(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if path.name.endswith("radialbeams-part")]


def wait_until(holds: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "It never came to that."
        time.sleep(0.005)


def in_place(folder: Path) -> Plan:
    return Plan((str(folder),), in_place=True)


def all_done(plan: Plan, job: JobSettings) -> dict[str, Outcome]:
    with batch.journaled(job, plan, 1) as run:
        return {Path(outcome.path).name: outcome for outcome in run.outcomes}


# --- files that change while the run is at work ---


def test_in_place_a_file_that_is_edited_before_its_output_lands_stays_as_it_is(
    tmp_path: Path,
) -> None:
    for number in range(2 * BATCH):
        face(tmp_path / f"{number}.png", 40 + number)
    edited = tmp_path / f"{BATCH + 3}.png"
    with batch.journaled(IN_PLACE, in_place(tmp_path), 1) as run:
        found = [next(run.outcomes)]
        wait_until(lambda: len(parts(tmp_path)) == BATCH)
        face(edited, 123)
        content = edited.read_bytes()
        found += run.outcomes
    assert edited.read_bytes() == content
    errors = {outcome.path: outcome.error for outcome in found if outcome.error}
    assert list(errors) == [str(edited)] and "changed" in errors[str(edited)]
    assert not parts(tmp_path)


def test_in_place_edits_after_a_kill_survive_the_same_command(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for number in range(2 * BATCH):
        face(folder / f"{number}.png", 40 + number)
    # Killed between the journal's line and the moves: parts lie there, and the line names them.
    hook = """
import os, signal
from radialbeams import batch
from radialbeams.cli import run
def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)
os.replace_before = os.replace
def replace(old, new):
    (kill if str(old).endswith("radialbeams-part") else os.replace_before)(old, new)
os.replace = replace
run()
"""
    options = (str(folder), "--in-place", *OPTIONS)
    killed = subprocess.run([sys.executable, "-c", hook, "upright", *options])
    assert killed.returncode == -signal.SIGKILL and len(parts(folder)) >= BATCH
    edits = {}
    for number in range(0, BATCH, 3):
        face(folder / f"{number}.png", 200)
        edits[number] = (folder / f"{number}.png").read_bytes()
    untouched = (folder / "1.png").read_bytes()
    again = subprocess.run([*COMMAND, *options], capture_output=True, text=True)
    assert again.returncode == 1 and again.stderr.count("changed") == len(edits)
    assert {n: (folder / f"{n}.png").read_bytes() for n in edits} == edits
    assert (folder / "1.png").read_bytes() != untouched  # the others are turned
    assert not parts(folder) and not (folder / RUN).exists()


def test_a_file_that_changes_between_judging_and_turning_fails(tmp_path: Path) -> None:
    from radialbeams.batch import worker
    from radialbeams.batch.plan import Item

    path = face(tmp_path / "a.png")
    busy = worker.Worker(IN_PLACE, lambda message: None)
    answers = busy.canonicalizer.answers_from_views

    def edit_and_answer(views: object, ends: object) -> object:
        face(path, 200)
        return answers(views, ends)  # type: ignore[arg-type]

    busy.canonicalizer.answers_from_views = edit_and_answer  # type: ignore[method-assign, assignment]
    part = str(tmp_path / ".part")
    (outcome,) = busy.batch([Item(str(path), str(path), part=part)], 0)
    assert outcome.error is not None and "changed" in outcome.error
    assert not os.path.exists(part)


def test_an_output_never_replaces_a_file_that_appeared_meanwhile(tmp_path: Path) -> None:
    for number in range(2 * BATCH):
        face(tmp_path / "in" / f"{number}.png", 40 + number)
    out = tmp_path / "out"
    theirs = out / f"{BATCH + 3}.png"
    with batch.journaled(TURNING, Plan((str(tmp_path / "in"),), folder=out), 1) as run:
        found = [next(run.outcomes)]
        wait_until(lambda: len(parts(out)) == BATCH)
        theirs.write_bytes(b"theirs")
        found += run.outcomes
    assert theirs.read_bytes() == b"theirs"
    (error,) = [outcome.error for outcome in found if outcome.error]
    assert "appeared" in error
    assert not parts(out)


# --- two runs ---


def start(*arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments), *OPTIONS, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("", "sub"),
        pytest.param("sub", "", marks=pytest.mark.long),
        pytest.param("", "sub/sub", marks=pytest.mark.long),
    ],
)
def test_runs_in_nested_folders_exclude_each_other(tmp_path: Path, first: str, second: str) -> None:
    for number in range(BATCH + 2):
        face(tmp_path / "sub" / "sub" / f"{number}.png", 40 + number)
    with batch.journaled(IN_PLACE, in_place(tmp_path / first), 1) as run:
        next(run.outcomes)
        before = contents(tmp_path)
        other = start(tmp_path / second, "--in-place")
        assert other.stderr is not None and b"Waiting for another run" in other.stderr.readline()
        assert contents(tmp_path) == before
        assert [outcome.error for outcome in run.outcomes] == [None] * (BATCH + 1)
        turned = contents(tmp_path)
    said, why = other.communicate(timeout=60)
    assert (other.returncode, said) == (2, b"") and b"already" in why
    assert contents(tmp_path) == turned  # each file once
    assert not [path for path in tmp_path.rglob(".*")]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*.png")}


def test_every_folder_that_is_named_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from radialbeams.batch import locks

    face(tmp_path / "a" / "1.png")
    face(tmp_path / "b" / "c" / "2.png")
    monkeypatch.setattr(locks, "PATIENCE", 0.2)
    both = Plan((str(tmp_path / "a"), str(tmp_path / "b")), in_place=True)
    with batch.journaled(IN_PLACE, both, 1) as run:
        for folder in ("a", "b", "b/c"):
            with (
                pytest.raises(JournalError, match="Another run is working"),
                batch.journaled(IN_PLACE, in_place(tmp_path / folder), 1),
            ):
                pass
        assert len(list(run.outcomes)) == 2
    assert not [path for path in tmp_path.rglob(".*")]


# --- planted files ---


def killed_run(folder: Path, out: Path) -> Plan:
    """An unfinished run with one batch done."""
    for number in range(BATCH + 2):
        face(folder / f"{number}.png", 40 + number)
    plan = Plan((str(folder),), folder=out)
    with pytest.raises(KeyboardInterrupt), batch.journaled(TURNING, plan, 1) as run:
        next(run.outcomes)
        raise KeyboardInterrupt
    return plan


def test_a_run_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    face(tmp_path / "in" / "a.png")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / RUN).symlink_to(tmp_path / "elsewhere")
    plan = Plan((str(tmp_path / "in"),), folder=tmp_path / "out")
    with pytest.raises(JournalError, match="not created by a run of yours"):
        all_done(plan, TURNING)
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder"])
def test_a_journal_that_leads_elsewhere_is_refused(tmp_path: Path, kind: str) -> None:
    face(tmp_path / "in" / "a.png")
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    planted = tmp_path / "out" / RUN / "journal.jsonl"
    planted.parent.mkdir(parents=True)
    if kind == "link":
        planted.symlink_to(victim)
    elif kind == "hard link":
        planted.hardlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(planted)
    else:
        planted.mkdir()
    plan = Plan((str(tmp_path / "in"),), folder=tmp_path / "out")
    with pytest.raises((JournalError, IsADirectoryError)):
        all_done(plan, TURNING)
    assert victim.read_bytes() == b"precious"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", ["", "journal.jsonl", "plan.jsonl"])
def test_what_another_user_planted_is_refused(tmp_path: Path, name: str) -> None:
    plan = killed_run(tmp_path / "in", tmp_path / "out")
    os.chown(tmp_path / "out" / RUN / name, 12345, 12345)
    with pytest.raises(JournalError, match="belongs to another user"):
        all_done(plan, TURNING)


def test_parts_have_unpredictable_names_and_follow_no_links(tmp_path: Path) -> None:
    from radialbeams.batch.landing import new_token, part_of, stage

    out = str(tmp_path / "a.jpg")
    assert part_of(out, new_token()) != part_of(out, new_token())
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    part = part_of(out, new_token())
    os.symlink(victim, part)
    stage(b"picture", out, part)
    assert victim.read_bytes() == b"precious" and not os.path.islink(part)


def test_a_plan_with_an_output_elsewhere_is_not_believed(tmp_path: Path) -> None:
    plan = killed_run(tmp_path / "in", tmp_path / "out")
    planned = tmp_path / "out" / RUN / "plan.jsonl"
    lines = planned.read_text().splitlines()
    for wrong in (tmp_path / "elsewhere.png", tmp_path / "out" / ".." / "elsewhere.png"):
        path, _ = json.loads(lines[-1])
        planned.write_text("\n".join([*lines[:-1], json.dumps([path, str(wrong)])]) + "\n")
        with pytest.raises(JournalError, match="damaged"):
            all_done(plan, TURNING)
    planned.write_text("\n".join([*lines[:-1], json.dumps(["/etc/a.png", None])]) + "\n")
    with pytest.raises(JournalError, match="damaged"):
        all_done(plan, TURNING)
    assert not (tmp_path / "elsewhere.png").exists()


def test_a_journal_cannot_replace_a_file_of_its_own_choice_in_place(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for number in range(BATCH + 2):
        face(folder / f"{number}.png", 40 + number)
    with (
        pytest.raises(KeyboardInterrupt),
        batch.journaled(IN_PLACE, in_place(folder), 1) as run,
    ):
        next(run.outcomes)
        raise KeyboardInterrupt
    victim = face(tmp_path / "victim.png")
    content = victim.read_bytes()
    planned = folder / RUN / "plan.jsonl"
    lines = planned.read_text().splitlines()
    path, _ = json.loads(lines[-1])
    for planted in ([path, str(victim)], [str(victim), str(victim)]):
        planned.write_text("\n".join([*lines[:-1], json.dumps(planted)]) + "\n")
        with pytest.raises(JournalError, match="damaged"):
            all_done(in_place(folder), IN_PLACE)
    assert victim.read_bytes() == content


def test_a_linked_folder_inside_the_outputs_is_not_written_through(tmp_path: Path) -> None:
    face(tmp_path / "in" / "sub" / "a.png")
    face(tmp_path / "in" / "b.png")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "sub").symlink_to(tmp_path / "elsewhere")
    found = all_done(Plan((str(tmp_path / "in"),), folder=tmp_path / "out"), TURNING)
    assert "link" in (found["a.png"].error or "") and found["b.png"].error is None
    assert not list((tmp_path / "elsewhere").iterdir())


# --- one file that cannot be written ---


def test_a_file_that_cannot_be_replaced_is_one_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        face(tmp_path / f"{number}.png", 40 + number)
    before = (tmp_path / "2.png").read_bytes()
    moved = os.replace

    def refuse_one(old: str, new: str) -> None:
        if str(new).endswith("2.png"):
            raise PermissionError(1, "Operation not permitted")
        moved(old, new)

    monkeypatch.setattr(os, "replace", refuse_one)
    for _ in range(2):
        found = all_done(in_place(tmp_path), IN_PLACE)
        assert [name for name, outcome in found.items() if outcome.error] == ["2.png"]
        assert "not permitted" in (found["2.png"].error or "")
    assert (tmp_path / "2.png").read_bytes() == before
    assert not parts(tmp_path)


# A worker that is killed when it has made one of the outputs.
DYING = """
import os, signal
from radialbeams.batch import worker
stage = worker.stage

def dying(data, out, *rest, **options):
    stage(data, out, *rest, **options)
    if out.endswith("2.png"):
        os.kill(os.getpid(), signal.SIGKILL)

worker.stage = dying
worker.main()
"""


def test_a_worker_that_dies_leaves_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from radialbeams.batch import pool

    monkeypatch.setattr(pool, "COMMAND", [sys.executable, "-c", DYING])
    for number in range(4):
        face(tmp_path / "in" / f"{number}.png", 40 + number)
    found = all_done(Plan((str(tmp_path / "in"),), folder=tmp_path / "out"), TURNING)
    assert [name for name, outcome in found.items() if outcome.error] == ["2.png"]
    assert sorted(os.listdir(tmp_path / "out")) == ["0.png", "1.png", "3.png"]


def test_a_name_with_no_room_for_its_ending_fails_alone(tmp_path: Path) -> None:
    long = face(tmp_path / ("x" * 244 + ".png"))
    face(tmp_path / "a.png")
    done = subprocess.run([*COMMAND, str(tmp_path), *OPTIONS], capture_output=True, text=True)
    assert done.returncode == 1
    assert "256 bytes" in done.stderr and "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-upright.png", "a.png", long.name]


# --- folders ---


def test_entries_that_resist_do_not_hide_the_others(tmp_path: Path) -> None:
    face(tmp_path / "in" / "sub" / "a.png")
    (tmp_path / "in" / "sub" / "loop.png").symlink_to("loop.png")
    command = [*COMMAND, str(tmp_path / "in"), "-o", str(tmp_path / "out"), *OPTIONS]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "loop.png: It cannot be read (Too many levels of symbolic links)" in done.stderr
    assert (tmp_path / "out" / "sub" / "a.png").exists()


def test_folders_may_be_nested_to_any_depth(tmp_path: Path) -> None:
    """As deep as paths go; beyond that only what lies there fails."""
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(2100):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    try:
        face(tmp_path / "a.png")
        face(tmp_path / "/".join(["d"] * 1200) / "b.png")
        found = all_done(Plan((str(tmp_path),), folder=tmp_path.parent / "deep-out"), TURNING)
        assert found["a.png"].error is None and found["b.png"].error is None
        (failed,) = [outcome for outcome in found.values() if outcome.error]
        assert "This folder cannot be read (File name too long)" in (failed.error or "")
    finally:
        for deep in (tmp_path, tmp_path.parent / "deep-out"):
            subprocess.run(["rm", "-rf", str(deep)], check=True)


# --- journals of version 0.1.0 ---


@pytest.mark.parametrize("kind", ["to-a-folder", "in-place"])
def test_a_run_that_version_0_1_0_left_unfinished_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    from radialbeams.batch.landing import part_of

    monkeypatch.setattr(radialbeams, "__version__", "0.1.0")
    job = JobSettings("ring.lfw", turns=True, writes=True, in_place=kind == "in-place")
    source = str(tmp_path / "in")
    for number in range(BATCH + 2):
        face(tmp_path / "in" / f"{number}.png", 40)
    out = tmp_path / ("in" if job.in_place else "out")
    plan = in_place(out) if job.in_place else Plan((source,), folder=out)
    weights = zoo.find("ring.lfw").card.sha256.onnx
    shutil.copytree(FIXTURES / kind, out / RUN)
    for path in (out / RUN).iterdir():
        text = path.read_text().replace("@HERE@", str(tmp_path)).replace("@WEIGHTS@", weights)
        path.write_text(text)
    # Killed when half of the first batch was in place: 3 had failed, 4 was left as it was.
    time.sleep(0.02)
    made = [n for n in range(BATCH) if n not in (3, 4)]
    for number in made:
        place = out / f"{number}.png"
        (place if number < 8 else Path(part_of(str(place), None))).write_bytes(
            b"output %d" % number
        )
    if job.in_place:
        face(tmp_path / "in" / "9.png", 200)  # edited since
        made.remove(9)
    with batch.journaled(job, plan, 1) as run:
        assert (run.files, run.done_before, run.added) == (BATCH + 2, BATCH, 0)
        found = list(run.outcomes)
    for number in made:
        assert (out / f"{number}.png").read_bytes() == b"output %d" % number
    failed = [Path(outcome.path).name for outcome in found if outcome.error]
    assert failed == (["9.png"] if job.in_place else [])
    assert found[3].action is not None  # tried again
    face(tmp_path / "before.png", 40)
    assert (out / f"{BATCH}.png").read_bytes() != (tmp_path / "before.png").read_bytes()
    assert not parts(tmp_path) and not (out / RUN).exists()


def test_settings_that_the_last_version_noted_are_those_of_the_same_command() -> None:
    from radialbeams.batch.run import _settings, _updated

    plan = Plan(("in",), folder=Path("out"))
    for changes, older in (
        ({}, {"snap": False, "corners": "expand"}),
        ({"snap": "90"}, {"snap": True, "corners": "expand"}),
        ({"snap": "none", "corners": "crop"}, {"snap": False, "corners": "crop"}),
    ):
        job = replace(TURNING, copies=False, min_quarter=0.9, **changes)
        now = json.loads(json.dumps(_settings(job, plan)))
        known = {**now, **older}
        for name in ("copies", "min_quarter", "min_exact", "tilts", "backup", "corrections"):
            del known[name]
        for name in ("recursive", "include", "exclude"):
            del known[name]
        assert _updated(job, known) == now
        assert _updated(job, {**known, "fill": "white"}) != now
        assert _updated(job, now) == now


# --- closed or broken streams ---


@pytest.mark.parametrize("streams", [">&- 2>log", ">log 2>&-", "<&- >&- 2>&-", "2>log | true"])
def test_closed_streams_lose_no_work(tmp_path: Path, streams: str) -> None:
    for number in range(20):
        face(tmp_path / "in" / f"{number}.png", 40 + number)
    command = shlex.join([*COMMAND, "in", "-o", "out", *OPTIONS, "--json"])
    script = f"set -o pipefail; {command} {streams}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, timeout=120)
    assert done.returncode == 0
    log = tmp_path / "log"
    said = log.read_text() if log.exists() else ""
    assert "Traceback" not in said and "Error" not in said
    if streams == ">log 2>&-":  # data stays apart from talk
        assert len([json.loads(line)["path"] for line in said.splitlines()]) == 20
    assert len(list((tmp_path / "out").glob("*.png"))) == 20
    assert not (tmp_path / "out" / RUN).exists()


def test_a_report_that_finds_the_disk_full_leaves_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from radialbeams import sheet

    page = sheet.ReportSheet("Turned upright")
    page.add(Outcome("a.jpg", action="turned"))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(OSError, match="No space"):
        page.write(tmp_path / "sheet.html")
    assert not list(tmp_path.iterdir())


def test_a_run_that_ends_while_the_next_one_starts_has_its_files_turned_once(
    tmp_path: Path,
) -> None:
    path = face(tmp_path / "a.png")
    started = time.time_ns()
    time.sleep(0.05)
    face(path, 200)  # as another run would, between the start of this one and its plan
    plan = Plan((str(tmp_path),), in_place=True, since=started)
    before = path.read_bytes()
    with (
        pytest.raises(PlanError, match="changed after this command was started"),
        batch.journaled(IN_PLACE, plan, 1),
    ):
        pass
    assert path.read_bytes() == before and not [*tmp_path.rglob(".*")]


def test_a_link_put_where_an_output_is_made_keeps_its_targets_attributes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from radialbeams.batch import attributes, landing

    victim, path = tmp_path / "victim", face(tmp_path / "a.png")
    victim.write_bytes(b"of someone else")
    os.utime(path, ns=(1, 1))
    part, copy, before = tmp_path / ".part", attributes.copy, os.stat(victim)

    def exchanged(*arguments: object, **options: object) -> None:
        part.unlink()
        part.symlink_to(victim)
        copy(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(attributes, "copy", exchanged)
    landing.stage(b"turned", str(path), str(part), like=str(path))
    after = os.stat(victim)
    assert (after.st_mtime_ns, after.st_mode) == (before.st_mtime_ns, before.st_mode)
