"""Locks: one run at a time in a folder, above it and below it, on every system."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from radialbeams.batch import JournalError, locks, system
from radialbeams.batch.locks import Claim, claim, wait_for
from radialbeams.batch.walk import RUN_FOLDER


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.1)


def release(held: list[Claim]) -> None:
    for one in held:
        one.give_up()


@pytest.mark.usefixtures("impatient")
def test_a_folder_below_one_that_is_claimed_cannot_be_claimed(tmp_path: Path) -> None:
    held = claim(tmp_path)
    for below in (tmp_path, tmp_path / "a", tmp_path / "a" / "b"):
        with pytest.raises(JournalError, match=f"Another run is working in {tmp_path}"):
            claim(below)
    release(held)
    release(claim(tmp_path / "a"))
    assert not list(tmp_path.rglob(RUN_FOLDER))


@pytest.mark.usefixtures("impatient")
def test_a_folder_above_waits_for_those_below(tmp_path: Path) -> None:
    held = claim(tmp_path / "a" / "b")
    above = claim(tmp_path)
    with pytest.raises(JournalError, match=r"working in .*b"):
        wait_for([tmp_path / "a" / "b"])
    release(held)
    wait_for([tmp_path / "a" / "b"])
    release(above)


@pytest.mark.usefixtures("impatient")
def test_folders_reached_through_links_are_the_same_folders(tmp_path: Path) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    held = claim(tmp_path / "link")
    with pytest.raises(JournalError):
        claim(tmp_path / "real" / "sub")
    release(held)


def test_all_folders_are_claimed_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.1)
    held = claim(tmp_path / "b")
    with pytest.raises(JournalError):
        claim(tmp_path / "a", [tmp_path / "b", tmp_path / "c"])
    assert [path.parent.name for path in tmp_path.rglob(RUN_FOLDER)] == ["b"]
    release(held)
    both = claim(tmp_path / "a", [tmp_path / "b", tmp_path / "b" / "c"])
    assert [one.folder.name for one in both] == ["a", "b"]  # c lies in b
    release(both)


def test_a_folder_that_is_refused_leaves_no_lock_in_the_others(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / RUN_FOLDER).symlink_to(tmp_path)
    with pytest.raises(JournalError, match="not created by a run of yours"):
        claim(tmp_path / "a", [tmp_path / "b"])
    assert not (tmp_path / "a" / RUN_FOLDER).exists()


def test_many_runs_in_nested_folders_neither_overlap_nor_wait_for_ever(tmp_path: Path) -> None:
    places = [tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / "c"]
    working: set[Path] = set()
    overlaps: list[tuple[Path, Path]] = []

    def run(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(4):
            place = rng.choice(places)
            held = claim(place)
            wait_for(below for below in places if place in below.parents)
            for other in list(working):
                if place == other or place in other.parents or other in place.parents:
                    overlaps.append((place, other))
            working.add(place)
            time.sleep(rng.uniform(0, 0.02))
            working.remove(place)
            release(held)

    threads = [threading.Thread(target=run, args=(seed,), daemon=True) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert not overlaps
    assert not list(tmp_path.rglob(RUN_FOLDER))


def test_a_lock_goes_with_the_process_that_held_it(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from radialbeams.batch import locks; "
        "held = locks.claim(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    process.kill()
    process.wait()
    release(claim(tmp_path))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.usefixtures("impatient")
def test_another_users_lock_further_up_delays_no_run(tmp_path: Path) -> None:
    held = claim(tmp_path)
    os.chown(tmp_path / RUN_FOLDER, 12345, 12345)
    release(claim(tmp_path / "a"))
    release(held)


# --- the portable form ---


def test_without_fcntl_a_byte_is_locked_as_windows_does_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows itself is played by a table of who holds which byte of which file."""
    holders: dict[tuple[int, int], int] = {}

    def locking(descriptor: int, mode: int, count: int) -> None:
        place = os.fstat(descriptor).st_ino, os.lseek(descriptor, 0, os.SEEK_CUR)
        if holders.setdefault(place, descriptor) != descriptor:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(system, "fcntl", None)
    monkeypatch.setattr(system, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    with open(tmp_path / "a", "a+b") as one, open(tmp_path / "a", "a+b") as two:
        assert system.try_lock(one.fileno())
        assert not system.try_lock(two.fileno())
        one.write(b"line\n")  # the lock does not move what is written
    assert (tmp_path / "a").read_bytes() == b"line\n"


def test_a_system_without_locks_refuses_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "fcntl", None)
    monkeypatch.setattr(system, "msvcrt", None)
    with open(tmp_path / "a", "wb") as file:
        assert system.try_lock(file.fileno())
        system.sync(file.fileno())


def test_the_batch_imports_where_fcntl_is_missing() -> None:
    script = (
        "import sys; sys.modules['fcntl'] = None; "
        "from radialbeams.batch import journal, landing, locks, plan, system; "
        "print(system.fcntl)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("None\n", "")


def test_on_macos_a_full_sync_is_requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(
        system,
        "fcntl",
        SimpleNamespace(F_FULLFSYNC=51, fcntl=lambda descriptor, command: asked.append(command)),
    )
    with open(tmp_path / "a", "wb") as file:
        system.sync(file.fileno())
    assert asked == [51]
