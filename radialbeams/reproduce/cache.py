"""Stores finished parts of a long measurement, so that an interrupted run can resume."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.records import write_record
from radialbeams.stored import JsonFields


def once(place: Path, given: JsonFields, measure: Callable[[], Record]) -> tuple[Record, float]:
    """The result of `measure`, or the stored one for the same `given`, and the seconds it took.

    A stored result is used until `given` changes.
    """
    if place.is_file():
        kept: Record = json.loads(place.read_text(encoding="utf-8"))
        if kept["given"] == given:
            return kept["found"], kept["seconds"]
    started = time.monotonic()
    found = measure()
    seconds = round(time.monotonic() - started, 1)
    write_record(place, {"given": given, "seconds": seconds, "found": found}, ["given", "found"])
    return found, 0.0
