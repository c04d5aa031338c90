"""Whole files at local paths and at addresses that fsspec knows, such as s3://bucket/key.

An output is never written over a file that somebody else put there. It may be written twice by
this run, when a worker dies between the output and its report; both times it has the same bytes.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from radialbeams.batch import Outcome
from radialbeams.batch.landing import TAKEN, Rules, discard, land, part_of, stage
from radialbeams.files import sha256
from radialbeams.images import content_of
from radialbeams.limits import Limits


def is_remote(address: str) -> bool:
    return "://" in address


def join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if is_remote(folder) else os.path.join(folder, name)


def filesystem(address: str) -> tuple[Any, str]:
    """fsspec's file system for an address, and the path inside it."""
    from fsspec.core import url_to_fs

    found: tuple[Any, str] = url_to_fs(address)
    return found


def files_below(address: str) -> dict[str, str]:
    """The files below a folder: their paths relative to it → their addresses; hidden ones not.

    An address that is a file itself is under its own name. Empty if there is nothing.
    """
    fs, root = filesystem(address)
    scheme = f"{address.split('://', 1)[0]}://" if is_remote(address) else ""
    found = {}
    for path in fs.find(root):
        below = path.removeprefix(root.rstrip("/")).lstrip("/") or path.rsplit("/", 1)[-1]
        if not any(name.startswith(".") for name in below.split("/")):
            found[below] = scheme + path
    return found


def read(address: str, limits: Limits) -> bytes:
    """At most one byte more than the limit, so that a larger file is refused and not loaded."""
    if is_remote(address):
        return _read_remote(address, limits.file_size + 1)
    with open(address, "rb") as file:
        return content_of(file, limits)


def _read_remote(address: str, most: int) -> bytes:
    fs, path = filesystem(address)
    try:
        content: bytes = fs.cat_file(path, start=0, end=most)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return b""  # an empty object has no range
    return content


def opened(address: str) -> IO[bytes]:
    if not is_remote(address):
        return open(address, "rb")
    fs, path = filesystem(address)
    file: IO[bytes] = fs.open(path, "rb")
    return file


def replace_file(address: str, content: bytes) -> None:
    """For this run's own records; appears whole or not at all."""
    if is_remote(address):
        fs, path = filesystem(address)
        fs.pipe_file(path, content)
        return
    part = part_of(address, f"{os.getpid():032x}")
    stage(content, address, part)
    os.replace(part, address)


def remove_folder(address: str) -> None:
    fs, path = filesystem(address)
    with suppress(FileNotFoundError):
        fs.rm(path, recursive=True)


@dataclass(frozen=True)
class Outputs:
    """Writes the outputs of one run; `token` makes the names of its unfinished files its own."""

    token: str
    overwrite: bool = False

    def put(self, address: str, content: bytes) -> str | None:
        """What kept the output from its place, or None."""
        if is_remote(address):
            return self._upload(address, content)
        part = part_of(address, self.token)
        stage(content, address, part)
        return self._landed(address, part, hashlib.sha256(content).hexdigest())

    @contextmanager
    def draft(self, address: str) -> Iterator[str]:
        """A local file to fill, for `publish`."""
        if not is_remote(address):
            os.makedirs(os.path.dirname(address) or ".", exist_ok=True)
            part = part_of(address, self.token)
            discard(part)
            try:
                yield part
            finally:
                discard(part)
            return
        with tempfile.TemporaryDirectory(prefix="radialbeams-") as folder:
            yield os.path.join(folder, "draft")

    def publish(self, draft: str, address: str) -> str | None:
        if is_remote(address):
            return self._upload(address, Path(draft))
        return self._landed(address, draft, sha256(Path(draft)))

    def land(self, outcome: Outcome) -> Outcome:
        """Of an output that a worker made beside its place."""
        if outcome.out is None or outcome.sha256 is None:
            return outcome
        problem = self._landed(outcome.out, part_of(outcome.out, self.token), outcome.sha256)
        return outcome if problem is None else Outcome(outcome.path, error=problem)

    def _landed(self, address: str, part: str, digest: str) -> str | None:
        rules = Rules(overwrite=self.overwrite)
        problem = land(Outcome(address, address, sha256=digest), part, rules).error
        if problem == TAKEN and sha256(Path(address)) == digest:
            return None  # put there by a worker that died before it could report it
        return problem

    def _upload(self, address: str, content: bytes | Path) -> str | None:
        fs, path = filesystem(address)
        try:
            if isinstance(content, Path):
                fs.put_file(str(content), path, mode=self._mode)
            else:
                fs.pipe_file(path, content, mode=self._mode)
        except FileExistsError:
            same = hashlib.sha256(fs.cat_file(path)).hexdigest() == sha256(content)
            return None if same else TAKEN
        return None

    @property
    def _mode(self) -> str:
        return "overwrite" if self.overwrite else "create"
