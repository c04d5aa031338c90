"""Writes and parses the lines of a plan and of a journal. Every parsed field is checked."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, get_args

from radialbeams.batch.job import RecordedSettings
from radialbeams.batch.locks import JournalError
from radialbeams.batch.outcome import SKIPPED, Action, Method, Outcome
from radialbeams.batch.plan import Item
from radialbeams.decisions import AngleSource, Reason

LONGEST = 1 << 26  # bytes; the line of a batch with all its thumbnails is far shorter


def written(content: Any) -> bytes:
    return json.dumps(content).encode("ascii") + b"\n"


def damaged(path: Path) -> JournalError:
    return JournalError(
        f"{path}, the record of an unfinished run, is damaged. Add --fresh to discard that run "
        "and start over."
    )


def lines_of(file: IO[bytes], path: Path) -> Iterator[bytes]:
    while line := file.readline(LONGEST):
        if len(line) == LONGEST:
            raise damaged(path)
        yield line


def parsed(line: bytes, path: Path) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise damaged(path) from error


def item_from(line: bytes, path: Path) -> Item:
    """An item from [input, output], or [input, output, error] if it is known to fail."""
    content = parsed(line, path)
    if not isinstance(content, list) or len(content) not in (2, 3):
        raise damaged(path)
    source, out, *errors = content
    if not (_is_path(source) and _or_none(_is_path)(out) and all(map(_or_none(_is_text), errors))):
        raise damaged(path)
    return Item(source, out, *errors)


def item_to(item: Item) -> bytes:
    return written([item.path, item.out, *([item.error] if item.error is not None else [])])


def outcomes_from(line: bytes, path: Path) -> list[Outcome]:
    """The outcomes in the line of a batch, or in a line {"again": …}."""
    content = parsed(line, path)
    records = content.get("again") if isinstance(content, dict) else content
    if not isinstance(records, list):
        raise damaged(path)
    return [_outcome(record, path) for record in records]


def header_from(line: bytes, path: Path) -> tuple[RecordedSettings, str | None]:
    """The settings, and the token in the temporary names of this run."""
    content = parsed(line, path)
    settings = content.get("settings") if isinstance(content, dict) else None
    if not isinstance(settings, dict):
        raise damaged(path)
    token = content.get("token")
    if token is not None and not (isinstance(token, str) and re.fullmatch("[0-9a-f]{32}", token)):
        raise damaged(path)
    return settings, token


def plain(value: Any) -> str:
    """A value from a file as printable text of at most 200 characters."""
    text = str(value)
    text = text if len(text) <= 200 else text[:199] + "…"
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def _outcome(content: Any, path: Path) -> Outcome:
    if not isinstance(content, dict) or not content.keys() <= CHECKS.keys():
        raise damaged(path)
    if "path" not in content or not all(CHECKS[name](value) for name, value in content.items()):
        raise damaged(path)
    return Outcome(**content)


# --- the allowed values of each field ---


def _is_path(value: Any) -> bool:
    """Whether the system accepts this as a path: no null byte, and it can be encoded."""
    if not isinstance(value, str) or not value or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(most: float) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value <= most
        and math.isfinite(value)
    )


def _matches(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _or_none(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


CHECKS: dict[str, Callable[[Any], bool]] = {
    "path": _is_path,
    "out": _or_none(_is_path),
    "angle_ccw": _or_none(_is_number(360)),
    "confidence": _or_none(_is_number(1)),
    "symmetry": _or_none(lambda value: type(value) is int and 0 <= value < 1_000_000),
    "action": _or_none(lambda value: isinstance(value, str) and value in get_args(Action)),
    "error": _or_none(_is_text),
    "reason": _or_none(
        lambda value: isinstance(value, str) and value in (*get_args(Reason), *SKIPPED)
    ),
    "measure": _or_none(_matches("[a-z]{1,20}")),
    "value": _or_none(_is_number(360)),
    "threshold": _or_none(_is_number(360)),
    "quarter": _or_none(lambda value: type(value) is int and value in (0, 90, 180, 270)),
    "quarter_confidence": _or_none(_is_number(1)),
    "applied_ccw": _or_none(_is_number(360)),
    "applied_by": _or_none(lambda value: isinstance(value, str) and value in get_args(AngleSource)),
    "method": _or_none(lambda value: isinstance(value, str) and value in get_args(Method)),
    "frame_ccw": _or_none(_is_number(360)),
    "document": lambda value: isinstance(value, bool),
    "dial": _or_none(_matches("[0-9a-f]{1,4096}")),
    "lost": _or_none(_is_text),
    "sha256": _or_none(_matches("[0-9a-f]{64}")),
    "before": _or_none(_matches("data:image/webp;base64,[A-Za-z0-9+/=]*")),
    "after": _or_none(_matches("data:image/webp;base64,[A-Za-z0-9+/=]*")),
    "source": _or_none(_matches(r"\d{1,20} -?\d{1,20} \d{1,20} \d{1,20}")),
    "changed": lambda value: isinstance(value, bool),
}
