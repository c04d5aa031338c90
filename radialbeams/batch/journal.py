"""The memory of an unfinished run: its plan, and one line for every batch that is done.

An output takes its place only after the line that names it is on the disk, and the line is
written only when the finished output lies beside that place under another name. So whenever the
run is killed, the last line says which outputs may still have to be moved, and nothing before or
after it is in doubt.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from radialbeams.batch.job import Outcome
from radialbeams.batch.plan import Item, batches

FOLDER, JOURNAL, PLAN = ".radialbeams-run", "journal.jsonl", "plan.jsonl"
PART = "radialbeams-part"
PATIENCE = 10.0  # seconds for the workers of a killed run to notice that they are alone


class JournalError(ValueError):
    """There is an unfinished run, and this is not it."""


def part_of(out: str) -> str:
    """Where an output is made: beside its place, hidden, the same name every time."""
    folder, name = os.path.split(out)
    digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return os.path.join(folder, f".{digest}.{PART}")


def stage(data: bytes, out: str, like: str | None = None) -> None:
    """Writes beside the place that the output will take, to the disk and not only to memory."""
    part = part_of(out)
    if os.path.isdir(out):
        raise IsADirectoryError(errno.EISDIR, "There is a folder where its output would go", out)
    os.makedirs(os.path.dirname(part) or ".", exist_ok=True)
    try:
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if like is not None:
            shutil.copymode(like, part)
    except OSError:
        if os.path.exists(part):
            os.unlink(part)
        raise


class Journal:
    """Opened by one run at a time; `lock` is to be handed to its workers, who share it."""

    def __init__(self, home: Path, settings: dict[str, Any], *, fresh: bool = False) -> None:
        self.folder = home / FOLDER
        self._file = _locked(self.folder)
        if fresh:
            self._file.truncate(0)
        said = _header(self._file)
        if said is None:  # nothing was begun: a plan found here is a leftover
            (self.folder / PLAN).unlink(missing_ok=True)
            self._file.truncate(0)
            self._append({"settings": settings})
        elif said != settings:
            self._file.close()
            raise JournalError(_difference(self.folder, said, settings))

    @property
    def lock(self) -> int:
        return self._file.fileno()

    def fix_plan(self, items: Iterable[Item]) -> int:
        """Writes the plan, unless an earlier start has; returns how many files it holds."""
        plan = self.folder / PLAN
        if not plan.exists():
            draft = plan.with_suffix(".part")
            with open(draft, "w", encoding="ascii") as file:
                file.writelines(json.dumps([item.path, item.out]) + "\n" for item in items)
                _sync(file.fileno())
            os.replace(draft, plan)
        with open(plan, "rb") as file:
            return sum(1 for _ in file)

    def batches(self, start: int = 0) -> Iterator[list[Item]]:
        with open(self.folder / PLAN, encoding="ascii") as file:
            yield from islice(batches(Item(*json.loads(line)) for line in file), start, None)

    def recover(self) -> int:
        """Makes good what a kill left half done; returns how many batches are done."""
        last, done, end = 0, -1, 0  # the first line holds the settings
        with open(self.folder / JOURNAL, "rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    last, end, done = end, end + len(line), done + 1
            file.seek(last)
            line = file.read(end - last)
        self._file.truncate(end)
        if done:
            outcomes = _outcomes(line)
            landed = [outcome if _land(outcome) else _lost(outcome) for outcome in outcomes]
            if landed != outcomes:
                self._file.truncate(last)
                self._append([asdict(outcome) for outcome in landed])
        self._clear_parts(done)
        return done

    def done(self) -> Iterator[list[Outcome]]:
        with open(self.folder / JOURNAL, "rb") as file:
            yield from map(_outcomes, islice(file, 1, None))

    def record(self, outcomes: Sequence[Outcome]) -> None:
        """Notes a batch, then lets its outputs take their places."""
        self._append([asdict(outcome) for outcome in outcomes])
        folders = {os.path.dirname(outcome.out or "") for outcome in outcomes if outcome.sha256}
        for outcome in outcomes:
            _land(outcome)
        for folder in folders:
            _sync_folder(folder)

    def _clear_parts(self, start: int) -> None:
        """Removes what was made, but never noted, for the batches from `start` on."""
        for item in (item for batch in self.batches(start) for item in batch):
            if item.out is not None:
                Path(part_of(item.out)).unlink(missing_ok=True)

    def finish(self) -> None:
        """Forgets the run. The journal goes first: without it a plan counts for nothing."""
        (self.folder / JOURNAL).unlink()
        (self.folder / PLAN).unlink(missing_ok=True)
        with suppress(OSError):  # something else lies there; it is not ours
            self.folder.rmdir()
        self._file.close()

    def close(self) -> None:
        self._file.close()

    def _append(self, content: Any) -> None:
        self._file.seek(0, os.SEEK_END)
        self._file.write(json.dumps(content).encode("ascii") + b"\n")
        self._file.flush()
        _sync(self._file.fileno())


def _outcomes(line: bytes) -> list[Outcome]:
    return [Outcome(**fields) for fields in json.loads(line)]


def _land(outcome: Outcome) -> bool:
    """Moves a finished output to its place, if that was not done before."""
    if outcome.out is None or outcome.sha256 is None:
        return True  # nothing was written for it
    with suppress(FileNotFoundError):
        os.replace(part_of(outcome.out), outcome.out)
        return True
    return _sha256(outcome.out) == outcome.sha256


def _lost(outcome: Outcome) -> Outcome:
    return Outcome(outcome.path, error="Its output was removed before it was in place; run again.")


def _sha256(path: str) -> str | None:
    with suppress(FileNotFoundError), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    return None


def _header(file: BinaryIO) -> dict[str, Any] | None:
    """The settings in the first line; None where that line is missing or torn."""
    file.seek(0)
    line = file.readline()
    settings: dict[str, Any] | None = json.loads(line)["settings"] if line[-1:] == b"\n" else None
    return settings


def _difference(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> str:
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    changes = "; ".join(f"{name} was {old.get(name)}, is {new.get(name)}" for name in names)
    return (
        f"{folder.parent} holds an unfinished run with other settings ({changes}). "
        "Repeat the earlier command to finish it, or add --fresh to forget it and start anew."
    )


def _locked(folder: Path) -> BinaryIO:
    """The journal, open and ours alone; a lock goes with the last process that holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + PATIENCE
    while True:
        file = open(folder / JOURNAL, "a+b")  # noqa: SIM115 - it stays open as long as the run
        if _lock(file) and os.fstat(file.fileno()).st_nlink:
            return file
        file.close()
        if time.monotonic() > until:
            raise JournalError(f"Another run is at work in {folder.parent}. Let it finish first.")
        folder.mkdir(parents=True, exist_ok=True)
        time.sleep(0.05)


def _lock(file: BinaryIO) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows, where one has to take care oneself
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True


def _sync(descriptor: int) -> None:
    os.fsync(descriptor)


def _sync_folder(folder: str) -> None:
    """So that the new name, too, survives a power cut, where the system knows how."""
    with suppress(OSError):
        descriptor = os.open(folder or ".", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
