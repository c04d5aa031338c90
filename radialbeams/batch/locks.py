"""Locks that allow one run at a time in a folder, the folders above it and those below.

Each run locks the journal in every folder that it works in. Then it looks for locked journals in
the folders above: if there is one, it releases its own locks and tries again later. For locked
journals in the folders below it waits while holding its own locks. So if two runs start at the
same time, the one in the upper folder goes first, and there is no deadlock. The system releases a
lock when the last process that holds it ends, for whatever reason.
"""

from __future__ import annotations

import os
import stat
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path

from radialbeams.batch import system
from radialbeams.batch.walk import RUN_FOLDER

JOURNAL, PLAN = "journal.jsonl", "plan.jsonl"
PATIENCE = 600.0  # seconds to wait for another run in the same folder
SILENCE = 2.0  # seconds of waiting before a warning
PAUSE = 0.05  # seconds between two attempts
MOST_FOLDERS = 64  # that one run locks; each lock takes a file descriptor


class JournalError(ValueError):
    """There is an unfinished run that this command cannot resume."""


@dataclass(frozen=True)
class Claim:
    """A folder's journal, open and locked."""

    folder: Path
    file: FileIO
    is_new: bool  # the journal did not exist before
    after: Path | None = None  # the folder of another run that had to end first

    def give_up(self) -> None:
        """Releases the lock, and removes the journal unless it belongs to an unfinished run."""
        run = self.folder / RUN_FOLDER
        if not self.file.closed and not (run / PLAN).exists():
            forget(self)
        self.file.close()


def claim(home: Path, others: Sequence[Path] = ()) -> list[Claim]:
    """Locks these folders once no other run works in or above them; the first claim is `home`'s."""
    claims: list[Claim] = []

    def is_taken() -> Path | None:
        return _try(_outermost([home, *others]), claims)

    waited_for = _wait(is_taken)
    claims.sort(key=lambda claimed: claimed.folder != home)
    return [replace(claimed, after=waited_for) for claimed in claims]


def wait_for(folders: Iterable[str | Path]) -> Path | None:
    """Waits until no run works in these folders; returns the last one it waited for, or None."""
    waited_for = None
    for folder in map(Path, folders):
        busy = _wait(lambda folder=folder: folder if _is_active(folder) else None)  # type: ignore[misc]
        waited_for = busy or waited_for
    return waited_for


def forget(claim: Claim) -> None:
    """Removes the journal, then the plan: a plan without a journal is ignored."""
    run = claim.folder / RUN_FOLDER
    if not system.REPLACES_OPEN_FILES:
        claim.file.close()
    with suppress(FileNotFoundError):
        (run / JOURNAL).unlink()
    (run / PLAN).unlink(missing_ok=True)
    (run / PLAN).with_suffix(".part").unlink(missing_ok=True)
    with suppress(OSError):  # the folder contains something else, which is not ours
        run.rmdir()
    claim.file.close()


def _wait(is_taken: Callable[[], Path | None]) -> Path | None:
    """Waits while `is_taken` returns a folder; returns the last one, or None without a wait."""
    began, warned, last = time.monotonic(), False, None
    while (busy := is_taken()) is not None:
        last = busy
        waited = time.monotonic() - began
        if waited > PATIENCE:
            raise JournalError(f"Another run is working in {busy}. Let it finish first.")
        if waited > SILENCE and not warned:
            warnings.warn(f"Waiting for another run in {busy} to end.", stacklevel=3)
            warned = True
        time.sleep(PAUSE)
    return last


def _outermost(folders: Sequence[Path]) -> list[Path]:
    """The first folder, and every other folder that lies inside none of these."""
    real = {os.path.realpath(folder): folder for folder in reversed(folders)}
    first = os.path.realpath(folders[0])
    return [
        real[place]
        for place in [first, *sorted(real.keys() - {first})]
        if place == first or not any(above in real for above in _above(place))
    ][:MOST_FOLDERS]


def _try(folders: Sequence[Path], claims: list[Claim]) -> Path | None:
    """Locks all folders and returns None, or locks none and returns a folder of another run."""
    busy: Path | None = folders[0]
    try:
        busy = _lock_all(folders, claims)
    finally:
        if busy is not None:
            for claimed in claims:
                claimed.give_up()
            claims.clear()
    return busy


def _lock_all(folders: Sequence[Path], claims: list[Claim]) -> Path | None:
    for number, folder in enumerate(folders):
        try:
            claim = _locked(folder)
        except OSError:
            if number == 0:
                raise
            continue  # this run cannot write there either
        if claim is None:
            return folder
        claims.append(claim)
    own = {os.path.realpath(claimed.folder) for claimed in claims}
    for place in own:
        for above in _above(place):
            if above not in own and _is_active(Path(above)):
                return Path(above)
    return None


def _above(folder: str) -> Iterable[str]:
    return map(str, Path(folder).parents)


def _locked(folder: Path) -> Claim | None:
    """Locks one folder; None if another run holds the lock, or just finished and removes it."""
    run = folder / RUN_FOLDER
    system.make_folders(str(folder))
    with suppress(FileNotFoundError):
        with suppress(FileExistsError):
            run.mkdir(mode=0o700)
        if not _is_own_folder(run):
            raise not_trusted(run)
        is_new = not os.path.lexists(run / JOURNAL)
        try:
            descriptor = system.open_own(str(run / JOURNAL), create=True)
        except system.Untrusted as error:
            raise not_trusted(run / JOURNAL) from error
        # Unbuffered: data that a full disk refused must not be written again when the file closes.
        file = FileIO(descriptor, "a+")
        if system.try_lock(descriptor) and os.fstat(descriptor).st_nlink:
            return Claim(folder, file, is_new)
        file.close()
    return None


def _is_active(folder: Path) -> bool:
    """Whether a run works in this folder.

    Locks of other users do not count; otherwise anybody could block everybody else's runs.
    """
    run = folder / RUN_FOLDER
    try:
        if not _is_own_folder(run):
            return False
        descriptor = system.open_own(str(run / JOURNAL))
    except (OSError, system.Untrusted):
        return False
    try:
        return not system.try_lock(descriptor, shared=True)
    finally:
        os.close(descriptor)


def _is_own_folder(run: Path) -> bool:
    info = os.lstat(run)
    return stat.S_ISDIR(info.st_mode) and system.is_own(info, str(run.parent))


def not_trusted(path: Path) -> JournalError:
    return JournalError(
        f"{path} was not created by a run of yours: it is a link, or belongs to another user, or "
        "has the wrong type. Remove it, or choose another folder with -o."
    )
