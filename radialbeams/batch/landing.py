"""Writes outputs under hidden temporary names, then moves them to their final places in one step.

Nothing is lost by the move: a file that changed since it was read is never replaced, and neither
is a file that appeared at the place of an output, unless the user asked to overwrite it.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from radialbeams.batch import attributes, system
from radialbeams.batch.outcome import Outcome
from radialbeams.batch.plan import Item
from radialbeams.batch.sources import CHANGED, stamp_of
from radialbeams.batch.walk import reason
from radialbeams.files import sha256

PART = "radialbeams-part"
ORIGINAL = ".orig"  # appended to the name of an original that is kept
FULL = (errno.ENOSPC, errno.EDQUOT)
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
LOCK_TRIES, LOCK_PAUSE = 40, 0.05  # count, seconds: how long to wait for another run's file lock
REMOVED = "Its output was removed before it could be moved to its place. Run the command again."
TAKEN = "Another file appeared at the place of its output, and was left as it is."
OUTSIDE = (
    "A link would put its output outside the output folder. Remove the link, or choose another "
    "folder with -o."
)


class OutputError(ValueError):
    """Outputs cannot be written to their folder; the message says what to do."""


@dataclass(frozen=True)
class Rules:
    """What may happen to existing files, and where outputs may go."""

    in_place: bool = False
    overwrite: bool = False
    holds: Callable[[Item], bool] = lambda item: True
    backup: bool = False  # in place: keep the original next to the new file


# --- writing an output ---


def new_token() -> str:
    """A random token for the temporary names of a run, so that nobody can guess them."""
    return secrets.token_hex(16)


def part_of(out: str, token: str | None) -> str:
    """The temporary path of an output. Version 0.1.0 used no token."""
    folder, name = os.path.split(out)
    content = os.fsencode(name) if token is None else f"{token}/".encode() + os.fsencode(name)
    digest = sha256(content)
    return os.path.join(folder, f".{digest[: 16 if token is None else 32]}.{PART}")


def stage(
    data: bytes,
    out: str,
    part: str,
    like: str | None = None,
    *,
    in_place: bool = False,
    force: bool = False,
    sync: Callable[[int], None] = system.sync,
) -> None:
    """Writes the output to `part`, next to its final place, and calls `sync` to sync it to disk.

    The output gets the attributes of the input `like`. In place, an attribute that cannot be
    copied is an error unless `force` is set.
    """
    if os.path.isdir(out):
        raise IsADirectoryError(errno.EISDIR, "There is a folder where its output would go", out)
    with writing_in(Path(out).parent):
        system.make_folders(os.path.dirname(part))
        with suppress(FileNotFoundError):
            os.unlink(part)  # left by a worker that died
        try:
            _write_new(data, part, like, in_place, force, sync)
        except (OSError, attributes.AttributesError):
            discard(part)
            raise


def _write_new(
    data: bytes,
    part: str,
    like: str | None,
    in_place: bool,
    force: bool,
    sync: Callable[[int], None],
) -> None:
    with open(system.open_new(part, private=in_place), "wb") as file:
        file.write(data)
        file.flush()
        target = file.fileno() if attributes.by_descriptor() else part
        if like is not None and in_place:
            attributes.copy(like, target, force=force)
        elif like is not None:
            attributes.copy_to_output(like, target)
        sync(file.fileno())


def parts_in(folder: str) -> set[str]:
    """The temporary files in a folder, of this run and of others."""
    with suppress(OSError), os.scandir(folder or ".") as entries:
        return {entry.name for entry in entries if entry.name.endswith(f".{PART}")}
    return set()


def discard(part: str) -> None:
    with suppress(OSError):
        os.unlink(part)


@contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """Converts errors that the user can fix into an OutputError that says how."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise OutputError(
                f"No space is left on the disk of {folder}. Free some space and repeat the "
                "command: it resumes where it stopped."
            ) from error
        if error.errno in FORBIDDEN:
            raise OutputError(
                f"You have no permission to write in {folder}. Change its permissions, or choose "
                "another folder with -o."
            ) from error
        raise


# --- moving it to its place ---


def land(outcome: Outcome, part: str, rules: Rules) -> Outcome:
    """Moves a finished output to its place, unless that was done before.

    If that is impossible, this file fails and its temporary output is removed.
    """
    try:
        problem = _land(outcome, part, rules)
    except OSError as error:
        problem = f"Its output could not be moved to its place ({reason(error)})."
    if problem is None:
        return outcome
    discard(part)
    return Outcome(outcome.path, error=problem, changed=problem == CHANGED)


def verified(outcome: Outcome, part: str) -> Outcome:
    """The outcome, or a failure if the temporary output has another hash than the recorded one."""
    if os.path.lexists(part) and _sha256(part) != outcome.sha256:
        discard(part)
        return Outcome(outcome.path, error=REMOVED)
    return outcome


def _land(outcome: Outcome, part: str, rules: Rules) -> str | None:
    """The error message, or None on success."""
    out = outcome.out
    if out is None or outcome.sha256 is None:
        return None  # nothing was written for it
    if not rules.holds(Item(outcome.path, out)):
        return OUTSIDE
    try:
        info = os.lstat(part)
    except FileNotFoundError:
        return _landed_before(outcome, out, rules)
    if not stat.S_ISREG(info.st_mode):
        return REMOVED
    if rules.in_place:
        return _replace_unchanged(outcome, part, out, info, rules.backup)
    if rules.overwrite:
        os.replace(part, out)
        return None
    return _take_free_place(part, out)


def _landed_before(outcome: Outcome, out: str, rules: Rules) -> str | None:
    if _sha256(out) == outcome.sha256:
        return None
    if rules.in_place and outcome.source != _stamp_or_none(out):
        return CHANGED  # it may have been moved into place, and edited since
    return REMOVED


def _replace_unchanged(
    outcome: Outcome, part: str, out: str, output: os.stat_result, backup: bool
) -> str | None:
    """Replaces a file that has not changed.

    The file is locked, so no other run can replace it between the comparison and the move.
    """
    with _locked(out) as free:
        now = os.lstat(out)
        if not free or not stat.S_ISREG(now.st_mode):
            return CHANGED
        if outcome.source is None:  # version 0.1.0 did not record the stamp of its input
            same = max(now.st_mtime_ns, now.st_ctime_ns) <= output.st_mtime_ns
        else:
            same = outcome.source == stamp_of(now)
        if not same:
            return CHANGED
        if backup and (problem := _keep_original(out, now)):
            return problem
        os.replace(part, out)
    return None


def _keep_original(out: str, now: os.stat_result) -> str | None:
    """Gives the original a second name, so that it survives when the new file takes the first."""
    name = out + ORIGINAL
    try:
        os.link(out, name, follow_symlinks=False)
    except FileExistsError:
        if not os.path.samestat(os.lstat(name), now):  # the same: an earlier start was killed here
            return (
                f"The backup {os.path.basename(name)} already exists. Move it elsewhere, or leave "
                "out --backup."
            )
    except OSError as error:
        return f"Its backup could not be made ({reason(error)}). Leave out --backup, or use -o."
    return None


@contextmanager
def _locked(path: str) -> Iterator[bool]:
    """Yields whether the lock was acquired.

    Windows cannot replace an open file, so there the file is not locked.
    """
    if not system.REPLACES_OPEN_FILES:
        yield True
        return
    descriptor = os.open(path, os.O_RDONLY | system.NO_FOLLOW | system.NO_WAIT | system.BINARY)
    try:
        yield any(map(_try_lock, [descriptor] * LOCK_TRIES))
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    if system.try_lock(descriptor):
        return True
    time.sleep(LOCK_PAUSE)
    return False


def _take_free_place(part: str, out: str) -> str | None:
    """Moves the output to a place where there is no file.

    A hard link fails if a file exists there; a plain move would replace that file.
    """
    try:
        os.link(part, out)
    except FileExistsError:
        if not os.path.samestat(os.lstat(part), os.lstat(out)):  # the same: killed here before
            return TAKEN
    except OSError:  # perhaps a file system without hard links; otherwise the move fails too
        if os.path.lexists(out):
            return TAKEN
        os.replace(part, out)
        return None
    os.unlink(part)
    return None


def _stamp_or_none(path: str) -> str | None:
    with suppress(OSError):
        return stamp_of(os.lstat(path))
    return None


def _sha256(path: str) -> str | None:
    """The hash of a file; None if it does not exist or is a pipe or a device."""
    with suppress(OSError):
        if stat.S_ISREG(os.stat(path).st_mode):
            return sha256(Path(path))
    return None
