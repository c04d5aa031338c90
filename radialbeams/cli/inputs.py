"""Reads inputs from files: lists of paths, and lists of corrected angles."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from radialbeams.batch import Plan

STDIN = "-"
LARGEST = 256 * 2**20  # bytes read of a list
CORRECTIONS = "corrections"


def paths_in(source: str | None) -> list[str]:
    """The paths in a list, separated by null bytes if it contains any, else by line ends."""
    if source is None:
        return []
    try:
        if source == STDIN:
            data = sys.stdin.buffer.read(LARGEST)
        else:
            with open(source, "rb") as file:
                data = file.read(LARGEST)
    except OSError as error:
        raise typer.BadParameter(
            f"{source} cannot be read ({error.strerror}).", param_hint="--files-from"
        ) from error
    separator = b"\0" if b"\0" in data else b"\n"
    names = (name.rstrip(b"\r") if separator == b"\n" else name for name in data.split(separator))
    return [os.fsdecode(name) for name in names if name]


def sources(paths: list[str] | None, files_from: str | None, corrections: list[str]) -> list[str]:
    """All given paths; without any, those of the corrected files."""
    if files_from == STDIN and STDIN in (paths or ()):
        raise typer.BadParameter("Standard input can be the list or an image, not both.")
    inputs = [*(paths or ()), *paths_in(files_from)] or corrections
    if not inputs:
        raise typer.BadParameter("Expected image files or folders; got none.", param_hint="PATHS")
    return inputs


def read_corrections(path: Path | None) -> dict[str, float | None]:
    """Maps paths to corrected angles, from a file saved by the page of a report."""
    if path is None:
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return dict(_correction(entry) for entry in content[CORRECTIONS])
    except OSError as error:
        raise _wrong(path, error.strerror or "unreadable") from error
    except KeyError as error:
        raise _wrong(path, f"{error.args[0]} is missing") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise _wrong(path, str(error)) from error


def corrections_for(
    plan: Plan, corrections: dict[str, float | None]
) -> tuple[tuple[str, float | None], ...]:
    """The corrections, with the paths as in the plan; all corrected files must be in the plan."""
    angles = {os.path.abspath(path): angle for path, angle in corrections.items()}
    absolute = {path.path: os.path.abspath(path.path) for path in plan.files()} if angles else {}
    missing = set(angles) - set(absolute.values())
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise typer.BadParameter(
            f"{len(missing)} of {len(angles)} corrected files {verb} not among the inputs, such as "
            f"{min(missing)}. Give the same files or folders as in the first run, in the same "
            "working folder; remove files that are gone from the list.",
            param_hint="--corrections",
        )
    return tuple((path, angles[place]) for path, place in absolute.items() if place in angles)


def _correction(entry: Any) -> tuple[str, float | None]:
    path, angle = entry["path"], entry["angle_ccw"]
    if not isinstance(path, str) or not path or "\0" in path:
        raise ValueError(f"expected a path; got {path!r}")
    if angle is None:
        return path, None
    if isinstance(angle, bool) or not isinstance(angle, int | float) or not math.isfinite(angle):
        raise ValueError(f"expected an angle in degrees, or null; got {angle!r}")
    return path, round(float(angle), 2) % 360


def _wrong(path: Path, why: str) -> typer.BadParameter:
    return typer.BadParameter(
        f'{path} is not a list of corrections ({why}). Expected {{"corrections": [{{"path": …, '
        '"angle_ccw": …}]}, as saved by the page of --report.',
        param_hint="--corrections",
    )
