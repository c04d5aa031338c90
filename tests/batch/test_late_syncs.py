"""Outputs are synced to disk while the next ones are computed, and not later than their batch."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from threading import Barrier, Event, Thread

import pytest
from PIL import Image

from radialbeams.batch import JobSettings, Outcome, landing, late_syncs, system, worker
from radialbeams.batch.late_syncs import LateSyncs
from radialbeams.batch.messages import WorkerMessage
from radialbeams.batch.plan import Item
from radialbeams.demo import PICTURES

TURNING = JobSettings("ring.lfw", turns=True, writes=True, min_confidence=0)


def test_outputs_are_synced_while_the_next_files_are_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk confirms the first file only when the third one is written."""
    written: list[str] = []
    third = Event()
    in_time: list[bool] = []

    def slow(descriptor: int) -> None:
        in_time.append(third.wait(20))

    def staged(data: bytes, out: str, *rest: object, **options: object) -> None:
        landing.stage(data, out, *rest, **options)  # type: ignore[arg-type]
        written.append(out)
        if len(written) == 3:
            third.set()

    monkeypatch.setattr(system, "sync", slow)
    monkeypatch.setattr(worker, "stage", staged)
    outcomes = turned_by_a_worker(tmp_path, 4)
    assert all(outcome.error is None for outcome in outcomes)
    assert in_time == [True] * 4, "a file waited for the disk, or the batch did not wait for it"


def test_several_files_are_synced_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk confirms them together: the first two are confirmed only when both are asked for."""
    both = Barrier(2, timeout=20)
    monkeypatch.setattr(system, "sync", lambda descriptor: both.wait() and None)
    outcomes = turned_by_a_worker(tmp_path, 2)
    assert all(outcome.error is None for outcome in outcomes)


def test_the_parent_hears_of_each_file_that_the_disk_is_slow_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its patience is for one file, and several syncs may be left when all are computed."""
    files: list[int] = []
    heard = [Event() for _ in range(3)]
    order = iter(heard)  # one thread syncs the files in their order

    def report(message: WorkerMessage) -> None:
        files.extend([message["at"]] if "at" in message else [])
        if len(files) > 6:
            heard[files[-1]].set()

    monkeypatch.setattr(late_syncs, "THREADS", 1)
    monkeypatch.setattr(system, "sync", lambda descriptor: next(order).wait(5) and None)
    turned_by_a_worker(tmp_path, 3, report)
    assert files == [0, 1, 2] * 3, "read, written, on the disk"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open files by /proc")
def test_no_file_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    turned_by_a_worker(tmp_path, 5)
    assert len(os.listdir("/proc/self/fd")) <= before + 1  # of the model's session, if anything


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space is left on the disk"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error."),
        (MemoryError(), "memory"),
    ],
)
def test_an_output_that_the_disk_refuses_late_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    calls = []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise error

    monkeypatch.setattr(system, "sync", full)
    outcomes = turned_by_a_worker(tmp_path, 3)
    assert [outcome.error is None for outcome in outcomes] == [True, False, True]
    assert words in str(outcomes[1].error)
    assert len(os.listdir(tmp_path / "out")) == 2, "the part of the failed output was left"


def test_without_threads_or_descriptors_a_file_is_synced_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(system, "sync", synced.append)
    with (tmp_path / "a").open("wb") as file, monkeypatch.context() as patch:
        syncs = LateSyncs()
        patch.setattr(os, "dup", refused)
        syncs.begin("a", file.fileno())
        assert synced == [file.fileno()] and syncs.has_ended_well("a")
        patch.setattr(Thread, "start", no_thread)
        LateSyncs().begin("a", file.fileno())
        assert len(synced) == 2


def refused(descriptor: int) -> int:
    raise OSError(errno.EMFILE, "Too many open files")


def no_thread(*arguments: object) -> None:
    raise RuntimeError("can't start new thread")


def turned_by_a_worker(
    folder: Path, count: int, report: worker.Report = lambda message: None
) -> list[Outcome]:
    """The outcomes of one batch, processed here instead of in a process of its own."""
    (folder / "in").mkdir()
    with Image.open(PICTURES / "astronaut.webp") as opened:
        picture = opened.convert("RGB").resize((96, 96))
    items = []
    for number in range(count):
        path = folder / "in" / f"{number}.png"
        picture.rotate(40 + number, Image.Resampling.BICUBIC).save(path)
        out = str(folder / "out" / f"{number}.png")
        items.append(Item(str(path), out, part=landing.part_of(out, "token")))
    try:
        return worker.Worker(TURNING, report).batch(items, 0)
    finally:
        system.limit_cpu(0)
