"""Reads and writes whole files at local paths and at fsspec URLs, such as s3://bucket/key.

An output never replaces a file of somebody else. This run may write an output twice, if a worker
dies after writing it and before its report; both times it has the same bytes.
"""

from __future__ import annotations

import errno
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
    """The fsspec file system for a URL or path, and the path inside it."""
    from fsspec.core import url_to_fs

    opened: tuple[Any, str] = url_to_fs(address)
    return opened


def files_below(address: str) -> dict[str, str]:
    """Maps the relative paths of all files below a folder to their addresses, without hidden ones.

    If the address is a file, the result maps its name to it. Empty if nothing exists there.
    """
    fs, root = filesystem(address)
    scheme = f"{address.split('://', 1)[0]}://" if is_remote(address) else ""
    paths = {}
    for path in fs.find(root):
        below = path.removeprefix(root.rstrip("/")).lstrip("/") or path.rsplit("/", 1)[-1]
        if not any(name.startswith(".") for name in below.split("/")):
            paths[below] = scheme + path
    return paths


def read(address: str, limits: Limits) -> bytes:
    """The content of a file; reads at most one byte more than the limit, then it is refused."""
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
        return b""  # an empty object has no byte range
    return content


def opened(address: str) -> IO[bytes]:
    if not is_remote(address):
        return open(address, "rb")
    fs, path = filesystem(address)
    file: IO[bytes] = fs.open(path, "rb")
    return file


def replace_file(address: str, content: bytes) -> None:
    """Writes a file atomically, replacing an old one; only for this run's own records."""
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
    """Writes the outputs of one run; `token` makes its temporary names unique."""

    token: str
    overwrite: bool = False

    def put(self, address: str, content: bytes) -> str | None:
        """Writes an output; returns the error message, or None on success."""
        if is_remote(address):
            return self._upload(address, content)
        part = part_of(address, self.token)
        stage(content, address, part)
        return self._landed(address, part, sha256(content))

    @contextmanager
    def draft(self, address: str) -> Iterator[str]:
        """The path of a local temporary file to write, for `publish`."""
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
        """Moves the temporary output of a worker to its place; returns the final outcome."""
        if outcome.out is None or outcome.sha256 is None:
            return outcome
        problem = self._landed(outcome.out, part_of(outcome.out, self.token), outcome.sha256)
        return outcome if problem is None else Outcome(outcome.path, error=problem)

    def _landed(self, address: str, part: str, digest: str) -> str | None:
        rules = Rules(overwrite=self.overwrite)
        problem = land(Outcome(address, address, sha256=digest), part, rules).error
        if problem == TAKEN and sha256(Path(address)) == digest:
            return None  # written by a worker that died before it could report it
        return problem

    def _upload(self, address: str, content: bytes | Path) -> str | None:
        fs, path = filesystem(address)
        try:
            if isinstance(content, Path):
                fs.put_file(str(content), path, mode=self._mode)
            else:
                fs.pipe_file(path, content, mode=self._mode)
        except FileExistsError:
            same = sha256(fs.cat_file(path)) == sha256(content)
            return None if same else TAKEN
        return None

    @property
    def _mode(self) -> str:
        return "overwrite" if self.overwrite else "create"
