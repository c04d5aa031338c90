"""Stores finished parts of a long measurement, so that an interrupted run can resume."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.records import write_record
from radialbeams.stored import JsonFields


def cached(
    path: Path, conditions: JsonFields, measure: Callable[[], Record]
) -> tuple[Record, float]:
    """The result of `measure`, and the seconds that an earlier call spent on it.

    The result is read from `path` if it was stored there under the same `conditions`; otherwise
    it is measured and stored, and the seconds are 0.
    """
    if path.is_file():
        stored: Record = json.loads(path.read_text(encoding="utf-8"))
        if stored["given"] == conditions:
            return stored["found"], stored["seconds"]
    started = time.monotonic()
    result = measure()
    seconds = round(time.monotonic() - started, 1)
    write_record(
        path, {"given": conditions, "seconds": seconds, "found": result}, ["given", "found"]
    )
    return result, 0.0
