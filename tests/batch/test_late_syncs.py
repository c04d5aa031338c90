"""Outputs are synced to disk while the next ones are computed, and not later than their batch."""

from __future__ import annotations

import errno
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image

from radialbeams.batch import JobSettings, Outcome, landing, system, worker
from radialbeams.batch.late_syncs import LateSyncs
from radialbeams.batch.plan import Item
from radialbeams.demo import PICTURES

TURNING = JobSettings("ring.lfw", turns=True, writes=True, min_confidence=0)


def test_outputs_are_synced_while_the_next_files_are_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six syncs of 0.2 s by a slow disk: each is under way while the next file is written."""
    written, during = [], []

    def slow(descriptor: int) -> None:
        before = len(written)
        time.sleep(0.2)
        during.append(len(written) - before)

    def noted(data: bytes, out: str, *rest: object, **options: object) -> None:
        landing.stage(data, out, *rest, **options)  # type: ignore[arg-type]
        written.append(out)

    monkeypatch.setattr(system, "sync", slow)
    monkeypatch.setattr(worker, "stage", noted)
    outcomes = turned_by_a_worker(tmp_path, 6)
    assert all(outcome.error is None for outcome in outcomes)
    assert during[0] > 0, "nothing was written while the first file was synced"
    assert len(during) == 6, "the batch ended before its outputs were on the disk"


def test_an_output_that_the_disk_refuses_late_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(system, "sync", full)
    outcomes = turned_by_a_worker(tmp_path, 3)
    assert [outcome.error is None for outcome in outcomes] == [True, False, True]
    assert "No space is left on the disk" in str(outcomes[1].error)
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
        assert synced == [file.fileno()] and syncs.is_done("a")
        patch.setattr(ThreadPoolExecutor, "submit", no_thread)
        LateSyncs().begin("a", file.fileno())
        assert len(synced) == 2


def refused(descriptor: int) -> int:
    raise OSError(errno.EMFILE, "Too many open files")


def no_thread(*arguments: object) -> None:
    raise RuntimeError("can't start new thread")


def turned_by_a_worker(folder: Path, count: int) -> list[Outcome]:
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
        return worker.Worker(TURNING, lambda message: None).batch(items, 0)
    finally:
        system.limit_cpu(0)
