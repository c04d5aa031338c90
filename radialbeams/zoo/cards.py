"""What a model card must say, and within which bounds, before anything is computed from it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LARGEST = 16 * 2**20  # bytes of a card; the shipped ones have a few thousand
LARGEST_SIDE = 4096  # pixels of a view or its parent


class DamagedModel(ValueError):
    """The file is not the one that its card describes, or the card describes none."""


@dataclass(frozen=True)
class Rule:
    """What a field must be, in words and as a check."""

    words: str
    holds: Callable[[Any], bool]


def _whole(least: int, most: int) -> Rule:
    return Rule(
        f"a whole number from {least} to {most}",
        lambda value: type(value) is int and least <= value <= most,
    )


def _number(least: float, most: float, *, above: bool = False) -> Rule:
    def holds(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return least <= value <= most and not (above and value == least)

    return Rule(f"a number {'above' if above else 'from'} {least:g} to {most:g}", holds)


def _one_of(*choices: object) -> Rule:
    words = "one of " + ", ".join(map(str, choices))
    return Rule(words, lambda value: type(value) in (int, str) and value in choices)


TEXT = Rule("text", lambda value: isinstance(value, str))
SHA256 = Rule(
    "64 hexadecimal digits",
    lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None,
)
SIDE = _whole(1, LARGEST_SIDE)
NEEDED = {
    "config.view_size": SIDE,
    "config.channels": _one_of(1, 3),
    "config.num_beams": _whole(3, 4096),
    "config.decoder": _one_of("lstm", "ring"),  # of the networks that read beams
    "protocol.name": _one_of("paper", "leakfree"),
}
# What a network without beams has instead.
INSTEAD = {"config.num_beams": "config.num_bins", "config.decoder": "config.architecture"}
# What the outputs of each architecture are; `nn.architectures` has the same column.
READINGS = {"lstm": "unit", "ring": "posterior", "convolutional": "posterior"}
# Checked where the card has them.
OPTIONAL = {
    "config.num_bins": _whole(4, 4096),
    "config.architecture": _one_of(*READINGS),
    "protocol.sigma": _number(0, 100, above=True),
    "looks.below": _number(0, 1),
    "documents": _one_of("quarter"),
    "protocol.parent_size": SIDE,
    "calibration.temperature": _number(0, 1000, above=True),
    "calibration.spread": _number(0, 180),
    "abstain.confidence": _number(0, 1),
    "abstain.angle": _number(0, 180),
    "abstain.upright": _number(0, 1),
    "sha256.onnx": SHA256,
    "sha256.safetensors": SHA256,
}
# These are passed on by name, so that a field which no one knows is refused as well.
CLOSED = ("calibration", "abstain")
TEXTS = ("name", "summary")
ABSENT = object()  # other than null, which is a wrong value


def read(path: Path) -> dict[str, Any]:
    """The card at a path, once all that running the model needs is there and makes sense."""
    card = _parsed(path)
    if missing := _missing(card):
        raise DamagedModel(f"{path} is not a model card: it does not say {', '.join(missing)}.")
    if wrong := _wrong(card):
        raise DamagedModel(f"{path} is not a model card: {wrong}.")
    return card


def _parsed(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"it is larger than {LARGEST // 2**20} MiB")
        card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DamagedModel(f"{path} is not a model card: {error}.") from error
    except RecursionError as error:
        raise DamagedModel(f"{path} is not a model card: it is nested too deeply.") from error
    return card


def _missing(card: Any) -> list[str]:
    needed = list(NEEDED)
    if _value(card, "protocol.name") == "leakfree":
        needed.append("protocol.parent_size")
    return [field for field in needed if not _has(card, field)]


def _has(card: Any, field: str) -> bool:
    names = (field, INSTEAD.get(field, field))
    return any(_value(card, name) is not ABSENT for name in names)


def reading(card: dict[str, Any]) -> str:
    """Whether a model's outputs are one `unit` vector, or a `posterior` of logits and offsets."""
    config = card["config"]
    name = config.get("architecture") or config["decoder"]
    if name not in READINGS:
        raise DamagedModel(
            f"Expected a model of one of {', '.join(READINGS)}; its card says {name!r}. "
            "Update radialbeams, or train the model again."
        )
    return READINGS[name]


def bins(card: dict[str, Any]) -> int:
    """Into how many directions a model divides the circle."""
    config = card["config"]
    number: int = config.get("num_bins") or config["num_beams"]
    return number


def _wrong(card: dict[str, Any]) -> str | None:
    """The first field that is not what it must be."""
    for part in (*CLOSED, "sha256"):
        if not isinstance(card.get(part, {}), dict):
            return f"{part} must be an object of fields; got {_short(card[part])}"
    for part in CLOSED:
        known = [field for field in OPTIONAL if field.startswith(f"{part}.")]
        for name in card.get(part, {}):
            if f"{part}.{name}" not in known:
                return f"{part} knows {', '.join(known)}; got {_short(name)}"
    for field, rule in (*NEEDED.items(), *OPTIONAL.items(), *((name, TEXT) for name in TEXTS)):
        value = _value(card, field)
        if value is not ABSENT and not rule.holds(value):
            return f"{field} must be {rule.words}; got {_short(value)}"
    return None


def _value(card: Any, field: str) -> Any:
    for name in field.split("."):
        card = card.get(name, ABSENT) if isinstance(card, dict) else ABSENT
    return card


def _short(value: Any) -> str:
    """A value from a file, in so few letters that the sentence stays one."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
