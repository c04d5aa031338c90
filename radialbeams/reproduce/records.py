"""Results as readable JSON: one line per key, and one line for each long list."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from radialbeams.files import write_whole
from radialbeams.stored import JsonDict, JsonFields

# A JSON object. What an experiment measures differs from one to the next and is only written,
# drawn and worded by that experiment, so it has no class; what all share is a `TrainingRecord`.
Record = JsonDict


def write_record(path: Path, record: JsonFields, long: Sequence[str]) -> None:
    """Writes the file atomically; parts of the values of the keys in `long` take one line each."""
    entries = [
        f" {json.dumps(key)}: {_text(_finite(value), key in long)}" for key, value in record.items()
    ]
    text = "{\n" + ",\n".join(entries) + "\n}\n"
    write_whole(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def _finite(value: Any) -> Any:
    """JSON has no NaN: missing measurements become null."""
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _text(value: Any, one_line: bool) -> str:
    if not one_line:
        return json.dumps(value, indent=1, ensure_ascii=False).replace("\n", "\n ")
    if isinstance(value, Mapping):  # a line for each part of it
        parts = [f"  {json.dumps(key)}: {json.dumps(part)}" for key, part in value.items()]
        return "{\n" + ",\n".join(parts) + "\n }"
    return json.dumps(value)
