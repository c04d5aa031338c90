"""The journal: what is remembered of a run, and what is made good after a kill."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from radialbeams.batch import BatchRun, JournalError, Outcome, OutputError, Plan, landing, locks
from radialbeams.batch.journal import Journal
from radialbeams.batch.plan import BATCH, Item
from radialbeams.batch.walk import RUN_FOLDER
from radialbeams.cli import terminal

SETTINGS = {"version": "1", "fill": None}


@pytest.fixture
def two_done(tmp_path: Path) -> Iterator[tuple[Journal, list[Outcome]]]:
    """A journal with two batches done, one output in each; these two outcomes."""
    kept = Journal(tmp_path, SETTINGS)
    kept.fix_plan(Item(f"{n}.jpg", str(tmp_path / f"{n}.jpg")) for n in range(3 * BATCH))
    outcomes = []
    for number in (0, BATCH):
        out = str(tmp_path / f"{number}.jpg")
        landing.stage(b"picture", out, kept.part_of(out))
        digest = hashlib.sha256(b"picture").hexdigest()
        outcomes.append(Outcome(f"{number}.jpg", out, action="turned", sha256=digest))
        rest = [Outcome(f"{number + n}.jpg", action="left") for n in range(1, BATCH)]
        kept.record([outcomes[-1], *rest])
    yield kept, outcomes
    kept.close()


def reopened(tmp_path: Path, kept: Journal) -> Journal:
    kept.close()
    return Journal(tmp_path, SETTINGS)


def stage_half(folder: Path, kept: Journal) -> None:
    """An output of the third batch is made and not noted."""
    out = str(folder / f"{2 * BATCH}.jpg")
    landing.stage(b"half", out, kept.part_of(out))


def test_a_journal_remembers_what_is_done(
    tmp_path: Path, two_done: tuple[Journal, list[Outcome]]
) -> None:
    kept, outcomes = two_done
    part = kept.part_of(outcomes[1].out or "")
    os.replace(outcomes[1].out or "", part)  # as if killed before it took its place
    again = reopened(tmp_path, kept)
    assert again.fix_plan([]) == 3 * BATCH  # an earlier plan stands
    assert again.recover() == 2
    assert [batch[0] for batch in again.done()] == outcomes
    assert Path(outcomes[1].out or "").read_bytes() == b"picture"
    assert not os.path.exists(part)
    assert [(n, batch[0].path) for n, batch in again.batches(2)] == [(2, f"{2 * BATCH}.jpg")]
    again.finish()
    assert not (tmp_path / RUN_FOLDER).exists()


def test_a_torn_last_line_counts_for_nothing(
    tmp_path: Path, two_done: tuple[Journal, list[Outcome]]
) -> None:
    kept, _ = two_done
    path = tmp_path / RUN_FOLDER / "journal.jsonl"
    path.write_bytes(path.read_bytes() + b'[{"path": "32.jpg", "ou')
    again = reopened(tmp_path, kept)
    assert again.recover() == 2
    assert path.read_bytes().endswith(b"]\n")
    again.close()


def test_an_output_that_was_removed_before_it_was_in_place_is_reported(
    tmp_path: Path, two_done: tuple[Journal, list[Outcome]]
) -> None:
    kept, outcomes = two_done
    os.unlink(outcomes[1].out or "")
    again = reopened(tmp_path, kept)
    again.recover()
    _, (lost, *_) = again.done()
    assert lost.error is not None and "removed" in lost.error
    again.close()


def test_an_output_that_cannot_be_moved_after_a_kill_is_one_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, two_done: tuple[Journal, list[Outcome]]
) -> None:
    kept, outcomes = two_done
    os.replace(outcomes[1].out or "", kept.part_of(outcomes[1].out or ""))
    again = reopened(tmp_path, kept)

    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(os, "replace", refused)
    assert again.recover() == 2
    _, (failed, *others) = again.done()
    assert failed.error is not None and "not permitted" in failed.error
    assert not any(outcome.error for outcome in others)
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(landing.PART)]
    again.close()


def test_what_was_made_but_never_noted_is_removed(
    tmp_path: Path, two_done: tuple[Journal, list[Outcome]]
) -> None:
    kept, _ = two_done
    stage_half(tmp_path, kept)
    again = reopened(tmp_path, kept)
    again.recover()
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(landing.PART)]
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
    monkeypatch.setattr(locks, "PATIENCE", 0.1)
    with pytest.raises(JournalError, match="Another run is working"):
        Journal(tmp_path, SETTINGS)


def test_a_run_waits_for_the_one_before_it(tmp_path: Path) -> None:
    first = Journal(tmp_path, SETTINGS)

    def finish() -> None:
        time.sleep(0.2)
        first.finish()

    thread = threading.Thread(target=finish)
    thread.start()
    second = Journal(tmp_path, SETTINGS)  # whose folder the first takes away meanwhile
    thread.join()
    assert second.fix_plan([]) == 0
    second.finish()


def test_what_was_never_planned_stands_in_nobodys_way(tmp_path: Path) -> None:
    Journal(tmp_path, {**SETTINGS, "fill": "white"}).close()
    kept = Journal(tmp_path, SETTINGS)
    assert not kept.is_resumed
    kept.finish()


def test_what_failed_can_be_tried_again(tmp_path: Path) -> None:
    kept = Journal(tmp_path, SETTINGS)
    kept.fix_plan(Item(f"{n}.jpg") for n in range(3))
    good, bad = Outcome("0.jpg", action="left"), Outcome("1.jpg", error="Damaged.")
    kept.record([good, bad, bad_too := Outcome("2.jpg", error="Empty.")])
    assert list(kept.failed()) == [(0, [Item("1.jpg"), Item("2.jpg")])]
    mended = Outcome("1.jpg", action="turned")
    kept.record([mended, bad_too], again=True)
    again = reopened(tmp_path, kept)
    assert again.recover() == 1
    assert list(again.done()) == [[good, mended, bad_too]]
    assert list(again.failed()) == [(0, [Item("2.jpg")])]
    again.close()


def test_an_output_that_vanished_before_it_could_be_moved_has_failed(tmp_path: Path) -> None:
    kept = Journal(tmp_path, SETTINGS)
    out = str(tmp_path / "0.jpg")
    kept.fix_plan([Item("0.jpg", out)])
    (lost,) = kept.record([Outcome("0.jpg", out, action="turned", sha256="0" * 64)])
    assert lost.error is not None and "removed" in lost.error
    assert list(kept.done()) == [[lost]]
    kept.close()


def test_starting_anew_removes_what_was_half_made(
    tmp_path: Path, two_done: tuple[Journal, list[Outcome]]
) -> None:
    stage_half(tmp_path, two_done[0])
    two_done[0].close()
    fresh = Journal(tmp_path, {"version": "2"}, fresh=True)
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(landing.PART)]
    fresh.finish()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("journal.jsonl", b"\0\0\0\n"),
        ("journal.jsonl", b'{"no settings": 1}\n'),
        ("journal.jsonl", b'{"settings": {"version": "1", "fill": null}}\n[{"pa\n'),
        ("journal.jsonl", b'{"settings": {"version": "1", "fill": null}}\nnothing\n'),
        ("journal.jsonl", b'{"settings": {"version": "1", "fill": null}}\n[{"nothing": 1}]\n'),
        ("plan.jsonl", b"nothing\n"),
    ],
)
def test_a_damaged_journal_is_named(
    tmp_path: Path, two_done: tuple[Journal, list[Outcome]], name: str, content: bytes
) -> None:
    two_done[0].close()
    (tmp_path / RUN_FOLDER / name).write_bytes(content)
    with pytest.raises(JournalError, match=rf"{name}.* is damaged. Add --fresh"):
        Journal(tmp_path, SETTINGS).recover()
    fresh = Journal(tmp_path, SETTINGS, fresh=True)
    assert fresh.fix_plan([]) == 0
    fresh.finish()


def test_a_full_disk_is_a_sentence_and_is_not_made_fuller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, two_done: tuple[Journal, list[Outcome]]
) -> None:
    kept, outcomes = two_done
    stage_half(tmp_path, kept)

    class FullDisk:
        """Takes three bytes and no more."""

        def __init__(self, file: object) -> None:
            self.file, self.left = file, 3

        def write(self, data: bytes) -> int:
            if not self.left:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.left = 0
            return self.file.write(data[:3])  # type: ignore[attr-defined, no-any-return]

        def __getattr__(self, name: str) -> object:
            return getattr(self.file, name)

    monkeypatch.setattr(kept, "_file", FullDisk(kept._file))
    with pytest.raises(OutputError, match=r"No space is left .* resumes where it stopped"):
        kept.record([Outcome("32.jpg", error="Damaged.")])
    assert kept.recover() == 2  # the torn line is gone, and so is what filled the disk
    assert [batch[0] for batch in kept.done()] == outcomes
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(landing.PART)]


def test_a_folder_that_may_not_be_written_in_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", ".radialbeams-run")

    monkeypatch.setattr(locks, "_locked", forbidden)
    with pytest.raises(OutputError, match=f"no permission to write in {tmp_path}"):
        Journal(tmp_path, SETTINGS)


def test_files_that_were_added_are_counted(
    tmp_path: Path, two_done: tuple[Journal, list[Outcome]]
) -> None:
    kept, outcomes = two_done
    assert kept.added(["0.jpg", "new.jpg", str(outcomes[0].out)]) == 1


def test_a_link_to_a_planned_file_is_not_added(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").touch()
    (tmp_path / "link.jpg").symlink_to("a.jpg")
    plan = Plan((str(tmp_path),), in_place=True)
    kept = Journal(tmp_path, SETTINGS)
    assert kept.fix_plan(plan.items()) == 1
    (tmp_path / "new.jpg").touch()
    assert kept.added((file.path for file in plan.files()), plan.place) == 1  # new.jpg
    kept.close()


@pytest.mark.parametrize(("count", "words"), [(1, "1 file added"), (2, "2 files added")])
def test_added_files_are_counted_in_words(count: int, words: str) -> None:
    (line,) = terminal.resumption(BatchRun(iter(()), added=count))  # type: ignore[arg-type]
    assert words in line and line.endswith("process it." if count == 1 else "process them.")


def test_an_outcome_gives_all_its_fields() -> None:
    outcome = Outcome("0.jpg", "0.png", 0.0, 0.5, 1, action="left", quarter=0)
    assert outcome.fields() == asdict(outcome)
    assert Outcome(**outcome.fields()) == outcome
