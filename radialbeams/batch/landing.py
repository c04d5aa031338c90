"""Outputs: made beside their places under hidden names, then moved there whole.

Whoever moves one checks first that nothing is lost by it: a file that changed since it was read is
never replaced, nor is a file that appeared where an output goes, unless it is to be overwritten.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from radialbeams.batch import attributes, system
from radialbeams.batch.job import Outcome
from radialbeams.batch.plan import Item
from radialbeams.batch.sources import CHANGED, stamp_of
from radialbeams.batch.walk import reason

PART = "radialbeams-part"
ORIGINAL = ".orig"  # behind the name of a file whose original is kept
FULL = (errno.ENOSPC, errno.EDQUOT)
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
LOCK_TRIES, LOCK_PAUSE = 40, 0.05  # times, seconds: how long another run may hold one file
REMOVED = "Its output was removed before it was in place. Run the command again."
TAKEN = "Another file appeared where its output goes, and was left as it is."
OUTSIDE = (
    "A link leads its output out of the folder for outputs. Remove the link, or name another "
    "folder with -o."
)


class OutputError(ValueError):
    """Nothing can be written where the outputs go; what to do is in the sentence."""


@dataclass(frozen=True)
class Rules:
    """What may become of files that are already there, and where outputs may go."""

    in_place: bool = False
    overwrite: bool = False
    holds: Callable[[Item], bool] = lambda item: True
    backup: bool = False  # in place, the original stays beside the new file


# --- making an output ---


def new_token() -> str:
    """Makes the names of a run's parts its own, so that nobody can put a file in their way."""
    return secrets.token_hex(16)


def part_of(out: str, token: str | None) -> str:
    """Where an output is made. Version 0.1.0 knew no tokens."""
    folder, name = os.path.split(out)
    content = os.fsencode(name) if token is None else f"{token}/".encode() + os.fsencode(name)
    digest = hashlib.sha256(content).hexdigest()
    return os.path.join(folder, f".{digest[: 16 if token is None else 32]}.{PART}")


def stage(
    data: bytes,
    out: str,
    part: str,
    like: str | None = None,
    *,
    in_place: bool = False,
    force: bool = False,
) -> None:
    """Writes beside the place that the output will take, to the disk and not only to memory.

    `like` is the input, whose attributes the output gets: in place all of them, or it is refused.
    """
    if os.path.isdir(out):
        raise IsADirectoryError(errno.EISDIR, "There is a folder where its output would go", out)
    with writing_in(Path(out).parent):
        system.make_folders(os.path.dirname(part))
        with suppress(FileNotFoundError):
            os.unlink(part)  # left by a worker that died
        try:
            _write_new(data, part, like, in_place, force)
        except (OSError, attributes.AttributesError):
            discard(part)
            raise


def _write_new(data: bytes, part: str, like: str | None, in_place: bool, force: bool) -> None:
    with open(system.open_new(part, private=in_place), "wb") as file:
        file.write(data)
        file.flush()
        target = file.fileno() if attributes.by_descriptor() else part
        if like is not None and in_place:
            attributes.copy(like, target, force=force)
        elif like is not None:
            attributes.copy_to_output(like, target)
        system.sync(file.fileno())


def parts_in(folder: str) -> set[str]:
    """The names of unfinished outputs in a folder, of this run and of others."""
    with suppress(OSError), os.scandir(folder or ".") as entries:
        return {entry.name for entry in entries if entry.name.endswith(f".{PART}")}
    return set()


def discard(part: str) -> None:
    with suppress(OSError):
        os.unlink(part)


@contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """Turns what people can mend themselves into a sentence that says how."""
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


# --- moving it to its place ---


def land(outcome: Outcome, part: str, rules: Rules) -> Outcome:
    """Moves a finished output to its place, if that was not done before.

    Whatever prevents it is the failure of this one file; then its part is removed.
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
    """The same, or its failure where the part that a killed run left is not what it made."""
    if os.path.lexists(part) and _sha256(part) != outcome.sha256:
        discard(part)
        return Outcome(outcome.path, error=REMOVED)
    return outcome


def _land(outcome: Outcome, part: str, rules: Rules) -> str | None:
    """What is wrong, or None."""
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
        return CHANGED  # it may well have landed, and have been edited since
    return REMOVED


def _replace_unchanged(
    outcome: Outcome, part: str, out: str, made: os.stat_result, backup: bool
) -> str | None:
    """Other runs cannot get between the comparison and the move: both hold the file's lock."""
    with _locked(out) as free:
        now = os.lstat(out)
        if not free or not stat.S_ISREG(now.st_mode):
            return CHANGED
        if outcome.source is None:  # version 0.1.0 did not note what it had read
            same = max(now.st_mtime_ns, now.st_ctime_ns) <= made.st_mtime_ns
        else:
            same = outcome.source == stamp_of(now)
        if not same:
            return CHANGED
        if backup and (problem := _keep_original(out, now)):
            return problem
        os.replace(part, out)
    return None


def _keep_original(out: str, now: os.stat_result) -> str | None:
    """Gives the original a second name, which it keeps when the new file takes the first."""
    name = out + ORIGINAL
    try:
        os.link(out, name, follow_symlinks=False)
    except FileExistsError:
        if not os.path.samestat(os.lstat(name), now):  # else killed right here
            return (
                f"There is a backup {os.path.basename(name)} already. Move it elsewhere, or leave "
                "out --backup."
            )
    except OSError as error:
        return f"Its backup could not be made ({reason(error)}). Leave out --backup, or use -o."
    return None


@contextmanager
def _locked(path: str) -> Iterator[bool]:
    """Whether the lock could be had; Windows cannot replace a file that is open."""
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
    """A second name can only be given where there is no file yet; a move would replace one."""
    try:
        os.link(part, out)
    except FileExistsError:
        if not os.path.samestat(os.lstat(part), os.lstat(out)):  # else killed right here
            return TAKEN
    except OSError:  # perhaps a file system without links; if not, this fails again
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
    """None where there is no such file, or no file but a pipe or a device."""
    with suppress(OSError):
        if stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
    return None
