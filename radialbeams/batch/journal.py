"""The memory of an unfinished run: its plan, and one line for every batch that is done.

An output takes its place only after the line that names it is on the disk, and the line is
written only when the finished output lies beside that place under another name. So whenever the
run is killed, the last line says which outputs may still have to be moved, and nothing before or
after it is in doubt.

The first line holds the settings; a list is a batch; {"again": …} replaces what earlier lines said
of some files.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import Any

from radialbeams.batch import attributes, system
from radialbeams.batch.job import Outcome
from radialbeams.batch.plan import Item, batches

FOLDER, JOURNAL, PLAN = ".radialbeams-run", "journal.jsonl", "plan.jsonl"
PART = "radialbeams-part"
PATIENCE = 600.0  # seconds for another run in the same folder to end
SILENCE = 2.0  # seconds of that before a word is said
FULL = (errno.ENOSPC, errno.EDQUOT)
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class JournalError(ValueError):
    """There is an unfinished run, and this is not it."""


class OutputError(ValueError):
    """Nothing can be written where the outputs go; what to do is in the sentence."""


def part_of(out: str) -> str:
    """Where an output is made: beside its place, hidden, the same name every time."""
    folder, name = os.path.split(out)
    digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return os.path.join(folder, f".{digest}.{PART}")


def stage(data: bytes, out: str, like: str | None = None, *, force: bool = False) -> None:
    """Writes beside the place that the output will take, to the disk and not only to memory."""
    part = part_of(out)
    if os.path.isdir(out):
        raise IsADirectoryError(errno.EISDIR, "There is a folder where its output would go", out)
    with writing_in(Path(out).parent):
        os.makedirs(os.path.dirname(part) or ".", exist_ok=True)
        try:
            with open(part, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if like is not None:
                attributes.copy(like, part, force=force)
        except (OSError, attributes.AttributesError):
            with suppress(OSError):
                os.unlink(part)
            raise


@contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """What people can mend themselves is told in a sentence that says how."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise OutputError(
                f"There is no room left for {folder}. Make room and repeat the command: it goes "
                "on where it was."
            ) from error
        if error.errno in FORBIDDEN:
            raise OutputError(
                f"Nothing may be written in {folder}. Change its permissions, or name another "
                "folder with -o."
            ) from error
        raise


class Journal:
    """Opened by one run at a time; `lock` is to be handed to its workers, who share it."""

    def __init__(self, home: Path, settings: dict[str, Any], *, fresh: bool = False) -> None:
        self.home, self.folder = home, home / FOLDER
        self.done_batches = 0
        self.is_resumed = False
        with writing_in(home):
            self._file = _locked(self.folder)
        try:
            self._begin(settings, fresh)
        except BaseException:
            self._file.close()
            raise

    @property
    def lock(self) -> int:
        return self._file.fileno()

    def fix_plan(self, items: Iterable[Item]) -> int:
        """Writes the plan, unless an earlier start has; returns how many files it holds."""
        plan = self.folder / PLAN
        if not plan.exists():
            draft = plan.with_suffix(".part")
            with writing_in(self.home), open(draft, "w", encoding="ascii") as file:
                file.writelines(json.dumps([item.path, item.out]) + "\n" for item in items)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, plan)
        with open(plan, "rb") as file:
            return sum(1 for _ in file)

    def batches(self, start: int = 0) -> Iterator[tuple[int, list[Item]]]:
        """Numbered as in the whole plan."""
        with open(self.folder / PLAN, "rb") as file:
            items = (Item(*_parsed(line, self.folder / PLAN)) for line in file)
            yield from islice(enumerate(batches(items)), start, None)

    def added(self, paths: Iterable[str]) -> int:
        """How many of these the plan does not know, neither to read nor to write."""
        items = (item for _, batch in self.batches() for item in batch)
        known = {hash(path) for item in items for path in (item.path, item.out)}
        return sum(hash(path) not in known for path in paths)

    def recover(self) -> int:
        """Makes good what a kill left half done; returns how many batches are done."""
        last, end, done = 0, 0, 0
        with open(self.folder / JOURNAL, "rb") as file:
            for line in file:
                if end and line[:1] not in (b"[", b"{"):
                    raise _damaged(self.folder / JOURNAL)
                if line.endswith(b"\n"):
                    last, end, done = end, end + len(line), done + line.startswith(b"[")
            file.seek(last)
            line = file.read(end - last)
        self._file.truncate(end)
        lost = [_lost(o) for o in self._outcomes(line) if not _land(o)] if last else []
        self._clear_parts()  # before anything is written: the disk may be full of them
        if lost:
            self._append(_again(lost))
        self.done_batches = done
        return done

    def done(self) -> Iterator[list[Outcome]]:
        """Of each batch what was said last."""
        later = {outcome.path: outcome for line in self._lines(b"{") for outcome in line}
        for outcomes in self._lines(b"["):
            yield [later.get(outcome.path, outcome) for outcome in outcomes]

    def failed(self) -> Iterator[tuple[int, list[Item]]]:
        """What may go better now: the files of each batch that ended with an error."""
        for (number, batch), outcomes in zip(self.batches(), self.done(), strict=False):
            items = [item for item, o in zip(batch, outcomes, strict=True) if o.error is not None]
            if items:
                yield number, items

    def record(self, outcomes: Sequence[Outcome], *, again: bool = False) -> list[Outcome]:
        """Notes a batch, then lets its outputs take their places; returns what came of that."""
        self._append(_again(outcomes) if again else [asdict(outcome) for outcome in outcomes])
        self.done_batches += not again
        landed = [outcome if _land(outcome) else _lost(outcome) for outcome in outcomes]
        for folder in {os.path.dirname(o.out or "") for o in outcomes if o.sha256}:
            _sync_folder(folder)
        if landed != list(outcomes):
            self._append(_again(outcome for outcome in landed if outcome.error is not None))
        return landed

    def finish(self) -> None:
        """Forgets the run. The journal goes first: without it a plan counts for nothing."""
        (self.folder / JOURNAL).unlink()
        (self.folder / PLAN).unlink(missing_ok=True)
        (self.folder / PLAN).with_suffix(".part").unlink(missing_ok=True)
        with suppress(OSError):  # something else lies there; it is not ours
            self.folder.rmdir()
        self._file.close()

    def close(self) -> None:
        self._file.close()

    def _begin(self, settings: dict[str, Any], fresh: bool) -> None:
        plan = self.folder / PLAN  # before there is one nothing was begun
        if fresh and plan.exists():
            with suppress(JournalError):  # a plan that cannot be read names no parts
                self._clear_parts()
            self._file.truncate(0)
        said = self._header() if plan.exists() else None
        self.is_resumed = said is not None
        if said is None:
            plan.unlink(missing_ok=True)
            self._file.truncate(0)
            self._append({"settings": settings})
        elif said != settings:
            raise JournalError(_difference(self.home, said, settings))

    def _header(self) -> dict[str, Any] | None:
        """The settings; None where a finished run was killed before it had forgotten its plan."""
        with open(self.folder / JOURNAL, "rb") as file:
            line = file.readline()
        if not line:
            return None
        content = _parsed(line, self.folder / JOURNAL)
        settings = content.get("settings") if isinstance(content, dict) else None
        if not isinstance(settings, dict):
            raise _damaged(self.folder / JOURNAL)
        return settings

    def _lines(self, start: bytes) -> Iterator[list[Outcome]]:
        with open(self.folder / JOURNAL, "rb") as file:
            for line in islice(file, 1, None):
                if line.startswith(start):
                    yield self._outcomes(line)

    def _outcomes(self, line: bytes) -> list[Outcome]:
        content = _parsed(line, self.folder / JOURNAL)
        try:
            found = content["again"] if isinstance(content, dict) else content
            return [Outcome(**fields) for fields in found]
        except (KeyError, TypeError) as error:
            raise _damaged(self.folder / JOURNAL) from error

    def _clear_parts(self) -> None:
        """Removes what was made but never noted, or noted but never moved."""
        for _, batch in self.batches():
            for item in batch:
                if item.out is not None:
                    Path(part_of(item.out)).unlink(missing_ok=True)

    def _append(self, content: Any) -> None:
        rest = memoryview(json.dumps(content).encode("ascii") + b"\n")
        with writing_in(self.home):
            while rest:  # the system may take less at a time
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())


def _again(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    return {"again": [asdict(outcome) for outcome in outcomes]}


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


def _parsed(line: bytes, path: Path) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> JournalError:
    return JournalError(
        f"{path}, the memory of an unfinished run, is damaged. Add --fresh to forget that run "
        "and start anew."
    )


def _difference(home: Path, old: dict[str, Any], new: dict[str, Any]) -> str:
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    changes = "; ".join(f"{name} was {old.get(name)}, is {new.get(name)}" for name in names)
    return (
        f"{home} holds an unfinished run with other settings ({changes}). "
        "Repeat the earlier command to finish it, or add --fresh to forget it and start anew."
    )


def _locked(folder: Path) -> FileIO:
    """The journal, open and ours alone; a lock goes with the last process that holds it."""
    began, told = time.monotonic(), False
    while (file := _locked_now(folder)) is None:
        waited = time.monotonic() - began
        if waited > PATIENCE:
            raise JournalError(f"Another run is at work in {folder.parent}. Let it finish first.")
        if waited > SILENCE and not told:
            warnings.warn(f"Waiting for another run in {folder.parent} to end.", stacklevel=2)
            told = True
        time.sleep(0.05)
    return file


def _locked_now(folder: Path) -> FileIO | None:
    """None where another run has it, or has just finished and takes the folder away."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        with suppress(FileExistsError):
            folder.mkdir()
        # Nothing is held back in memory: what a full disk refuses is not tried again later.
        file = open(folder / JOURNAL, "a+b", buffering=0)  # noqa: SIM115 - open while it runs
        if _lock(file) and os.fstat(file.fileno()).st_nlink:
            return file
        file.close()
    return None


def _lock(file: FileIO) -> bool:
    return system.lock(file.fileno())


def _sync_folder(folder: str) -> None:
    """So that the new name, too, survives a power cut, where the system knows how."""
    with suppress(OSError):
        descriptor = os.open(folder or ".", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
