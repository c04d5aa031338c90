"""Reads JSON objects from files and checks their fields against the types of a dataclass.

A file may be hostile or damaged; both give an error message of one sentence.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

# A JSON object. Until its fields are checked, any of them may be missing or of the wrong type.
JsonDict = dict[str, Any]
JsonFields = Mapping[str, Any]  # the same, to be read only

LARGEST = 16 * 2**20  # bytes; a recipe or a card has a few thousand


def read_object(path: Path, what: str) -> JsonDict:
    """The JSON object in a file; raises ValueError with the path and what is wrong."""
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"it is larger than {LARGEST // 2**20} MiB")
        values = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError(f"{path} is not {what}: it is nested too deeply.") from error
    except ValueError as error:
        raise ValueError(f"{path} is not {what}: {error}.") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} is not {what}: expected a JSON object of fields.")
    return values


def check_fields(what: str, values: JsonFields, kind: type) -> None:
    """Raises ValueError for fields that the class does not declare, and for wrong types."""
    if not isinstance(values, Mapping):
        raise ValueError(f"Expected {what} as fields and values; got {short(values)}.")
    names = [entry.name for entry in fields(kind)]
    unknown = sorted(set(map(str, values)) - set(names))
    if unknown:
        raise ValueError(f"Unknown in {what}: {', '.join(unknown)}. Known: {', '.join(names)}.")
    declared = get_type_hints(kind)
    for name, value in values.items():
        if not is_of(value, declared[name]):
            raise ValueError(
                f"{name} in {what} must be {kind_in_words(declared[name])}; got {short(value)}."
            )


def short(value: Any) -> str:
    """A value from a file, shortened for an error message."""
    if isinstance(value, Mapping | list | tuple):
        return "an object" if isinstance(value, Mapping) else "a list"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def is_of(value: Any, declared: Any) -> bool:
    """Whether a value from a file has the declared type."""
    origin, parts = get_origin(declared), get_args(declared)
    if origin in (Union, UnionType):
        return any(is_of(value, part) for part in parts)
    if declared is NoneType:
        return value is None
    if origin is Literal:
        return isinstance(value, str)  # the class itself checks which ones are allowed
    if origin is tuple:
        return isinstance(value, list | tuple) and all(is_of(item, parts[0]) for item in value)
    if origin in (dict, Mapping):
        return isinstance(value, Mapping) and all(
            is_of(k, parts[0]) and is_of(v, parts[1]) for k, v in value.items()
        )
    if declared is float:
        # An integer may be too large to convert to a float.
        return type(value) in (int, float) and abs(value) < 1e300 and math.isfinite(value)
    if is_dataclass(declared):
        return isinstance(value, Mapping | declared)  # type: ignore[arg-type, unused-ignore]
    return type(value) is declared


def kind_in_words(declared: Any) -> str:
    if get_origin(declared) in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(kind_in_words, get_args(declared))))
    if declared is NoneType:
        return "null"
    if get_origin(declared) is tuple:
        return "a list of whole numbers"
    if get_origin(declared) in (dict, Mapping) or is_dataclass(declared):
        return "an object"
    words = {int: "a whole number", float: "a finite number", bool: "true or false"}
    return words.get(declared, "text")
