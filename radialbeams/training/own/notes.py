"""A cache of scan results, so that a second scan reads only the files that changed.

A line of JSON for each image: its stamp, which changes with its file, and the result. Half a line
of a killed scan is ignored.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO

from radialbeams.stored import JsonFields, check_fields
from radialbeams.training.own.scanned import ScannedImage, UnusedFile
from radialbeams.training.own.shards import Stored

VERSION = 1  # of how an image is judged; other lines are ignored
FLUSH = 64  # lines

Result = ScannedImage | UnusedFile


def stamp(root: Path, stored: Stored) -> str:
    """A text that changes whenever the file is written to."""
    try:
        state = os.stat(root / stored.file)
    except OSError:
        return f"{VERSION}/{stored.path}/gone"
    return f"{VERSION}/{stored.path}/{stored.offset}/{state.st_size}/{state.st_mtime_ns}"


class Notes:
    """Results by stamp, in memory and, if there is a path, also in a file."""

    def __init__(self, path: Path | None) -> None:
        self.known: dict[str, Result] = {}
        self.file: IO[str] | None = None
        self.lines = 0
        if path is not None:
            self.known = _read(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            self.file = path.open("a", encoding="utf-8", errors="surrogateescape")

    def __enter__(self) -> Notes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.file is not None:
            self.file.close()

    def add(self, stamp: str, result: Result) -> None:
        self.known[stamp] = result
        if self.file is None:
            return
        name = "found" if isinstance(result, ScannedImage) else "skipped"
        start = "" if self.lines else "\n"  # ends what a killed scan left of its last line
        self.file.write(f"{start}{json.dumps({'stamp': stamp, name: asdict(result)})}\n")
        self.lines += 1
        if self.lines % FLUSH == 0:
            self.file.flush()


def _read(path: Path) -> dict[str, Result]:
    known: dict[str, Result] = {}
    if not path.exists():
        return known
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            try:
                values = json.loads(line)
                known[str(values["stamp"])] = _result(values)
            except (KeyError, TypeError, ValueError, AttributeError):
                continue
    return known


def _result(values: JsonFields) -> Result:
    if "skipped" in values:
        check_fields("a note", values["skipped"], UnusedFile)
        return UnusedFile(**values["skipped"])
    fields = dict(values["found"])
    stored = Stored(**fields.pop("stored"))
    width, height = fields.pop("size")
    return ScannedImage(**fields, size=(int(width), int(height)), stored=stored)
