"""Parses a card from JSON; every field is checked before anything is computed from it.

The first format had no version. It describes the network only by its settings, so the values
needed to run it are derived from these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from radialbeams.cards.card import (
    VERSION,
    AveragedWith,
    Card,
    Cost,
    DamagedModel,
    DataCard,
    Evaluation,
    Hashes,
    Looks,
    Measurement,
    NetworkCard,
    RiskCoverage,
    TrainingCard,
    UncertainObject,
    ViewProtocol,
    WeightsOrigin,
)
from radialbeams.posterior import Calibration, Thresholds
from radialbeams.stored import JsonDict, JsonFields, is_of, kind_in_words, read_object, short

LARGEST_SIDE = 4096  # pixels of a view or its parent
T = TypeVar("T")


@dataclass(frozen=True)
class Rule:
    """The allowed values of a field, in words and as a check."""

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


SHA256 = Rule(
    "64 hexadecimal digits",
    lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None,
)
SIDE = _whole(1, LARGEST_SIDE)
# The allowed values of fields; for other fields, only the type in the dataclass is checked.
RULES = {
    "network.reading": _one_of("unit", "posterior"),
    "network.view_size": SIDE,
    "network.channels": _one_of(1, 3),
    "network.num_bins": _whole(3, 4096),
    "protocol.name": _one_of("paper", "leakfree"),
    "protocol.padding": _one_of("zeros", "corner"),
    "protocol.parent_size": SIDE,
    "protocol.sigma": _number(0, 100, above=True),
    "protocol.reach": _number(0, 1, above=True),
    "looks.below": _number(0, 1),
    "looks.oblong_below": _number(0, 1),
    "looks.oblong_temperature": _number(0, 1000, above=True),
    "looks.drawn": _number(0, 10),
    "documents": _one_of("quarter"),
    "calibration.temperature": _number(0, 1000, above=True),
    "calibration.spread": _number(0, 180),
    "abstain.confidence": _number(0, 1),
    "abstain.angle": _number(0, 180),
    "abstain.upright": _number(0, 1),
    "abstain.quarter": _number(0, 1),
    "abstain.exact": _number(0, 1),
    "sha256.onnx": SHA256,
    "sha256.safetensors": SHA256,
}
TEXTS = ("name", "summary", "licence", "works_on", "fails_on")
# Fields on the outcome of a run, which the file has next to those of the recipe.
OUTCOME = {"minutes": float, "steps_done": int, "seconds": float, "hardware": str}
# What the networks of the first format return.
FIRST_READINGS = {"lstm": "unit", "ring": "posterior", "convolutional": "posterior"}
FIRST_NEEDED = {
    "view_size": SIDE,
    "channels": _one_of(1, 3),
    "num_beams": _whole(3, 4096),
    "decoder": _one_of("lstm", "ring"),  # of the networks that read beams
}
# The fields that a network without beams had instead.
FIRST_INSTEAD = {
    "num_beams": ("num_bins", _whole(4, 4096)),
    "decoder": ("architecture", _one_of(*FIRST_READINGS)),
}


def read(path: Path) -> Card:
    """The card at a path; `DamagedModel` names the file and the field that is wrong."""
    try:
        values = read_object(path, "a model card")
    except ValueError as error:
        raise DamagedModel(str(error)) from error
    try:
        return parse(values)
    except ValueError as error:
        raise DamagedModel(f"{path} is not a model card: {error}.") from error


def parse(values: JsonFields) -> Card:
    """A card from its JSON; raises ValueError with a clause on what is wrong."""
    version = values.get("version", 1)
    if not is_of(version, int) or not 1 <= version <= VERSION:
        raise ValueError(
            f"version must be a whole number from 1 to {VERSION}; got {short(version)} "
            "(update radialbeams to read a newer one)"
        )
    values = _first_as_now(values) if version == 1 else dict(values)
    if missing := _missing(values):
        raise ValueError(f"it lacks {', '.join(missing)}")
    for name in TEXTS:
        _check(name, values.get(name, ""), str)
    for name, kind in (("parameters", int | None), ("parity", float | None)):
        _check(name, values.get(name), kind)
    declared = [field.name for field in fields(Card)]
    return Card(
        network=_part(NetworkCard, "network", values["network"]),
        config=_object("config", values.get("config", {})),
        protocol=_part(ViewProtocol, "protocol", values["protocol"]),
        **{name: values.get(name, "") for name in TEXTS},
        data=_optional(DataCard, "data", values),
        training=_training(values),
        calibration=_closed(Calibration, "calibration", values),
        calibrated=_numbers("calibrated", values.get("calibrated", {})),
        looks=_optional(Looks, "looks", values),
        abstain=_closed(Thresholds, "abstain", values) if "abstain" in values else None,
        trust=_sentences("trust", values.get("trust", [])),
        documents=values.get("documents"),
        least_confident=_rows(UncertainObject, "least_confident", values),
        parameters=values.get("parameters"),
        sha256=_part(Hashes, "sha256", values.get("sha256", {})),
        parity=values.get("parity"),
        metrics={
            name: _measurement(f"metrics.{name}", entry)
            for name, entry in _object("metrics", values.get("metrics", {})).items()
        },
        end_to_end=_object("end_to_end", values.get("end_to_end", {})),
        cost=_optional(Cost, "cost", values),
        other={name: value for name, value in values.items() if name not in declared},
    )


def _missing(values: JsonFields) -> list[str]:
    needed = [f"network.{field.name}" for field in fields(NetworkCard)] + ["protocol.name"]
    if _value(values, "protocol.name") == "leakfree":
        needed.append("protocol.parent_size")
    return [name for name in needed if _value(values, name) is _ABSENT]


_ABSENT = object()  # unlike null, which is a wrong value


def _value(values: Any, field: str) -> Any:
    for name in field.split("."):
        values = values.get(name, _ABSENT) if isinstance(values, Mapping) else _ABSENT
    return values


# --- the first format ---


def _first_as_now(values: JsonFields) -> JsonDict:
    """Converts a card without a version to the second format."""
    config = values.get("config")
    missing = [] if isinstance(config, Mapping) else [f"config.{name}" for name in FIRST_NEEDED]
    settings: JsonDict = {}
    for name, rule in FIRST_NEEDED.items():
        other, other_rule = FIRST_INSTEAD.get(name, (name, rule))
        for field, field_rule in ((other, other_rule), (name, rule)):
            value = _value(config, field)
            if value is _ABSENT:
                continue
            if not field_rule.holds(value):
                raise ValueError(f"config.{field} must be {field_rule.words}; got {short(value)}")
            settings.setdefault(name, value)
        if name not in settings and f"config.{name}" not in missing:
            missing.append(f"config.{name}")
    missing += [name for name in ("protocol.name",) if _value(values, name) is _ABSENT]
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}")
    network = {
        "architecture": settings["decoder"],
        "reading": FIRST_READINGS[settings["decoder"]],
        "view_size": settings["view_size"],
        "channels": settings["channels"],
        "num_bins": settings["num_beams"],
    }
    data = values.get("data")
    if isinstance(data, Mapping):
        split_by = _value(values, "training.split_by")
        data = {**({} if split_by is _ABSENT else {"split_by": split_by}), **data}
        return {**values, "network": network, "data": data}
    return {**values, "network": network}


# --- parts ---


def _part(kind: type[T], where: str, values: Any) -> T:
    """A flat dataclass from its declared fields; fields of later versions are ignored."""
    declared = get_type_hints(kind)
    settings = {name: value for name, value in _object(where, values).items() if name in declared}
    for name, value in settings.items():
        _check(f"{where}.{name}", value, declared[name])
    try:
        return kind(**settings)
    except TypeError as error:
        needed = [name for name in declared if name not in settings and not hasattr(kind, name)]
        raise ValueError(f"it lacks {', '.join(f'{where}.{name}' for name in needed)}") from error


def _optional(kind: type[T], where: str, values: JsonFields) -> T | None:
    return _part(kind, where, values[where]) if where in values else None


def _closed(kind: type[T], where: str, values: JsonFields) -> T:
    """A part in which unknown fields are refused, because its fields affect the results."""
    content = _object(where, values.get(where, {}))
    declared = list(get_type_hints(kind))
    for name in content:
        if name not in declared:
            listed = ", ".join(f"{where}.{field}" for field in declared)
            raise ValueError(f"{where} must have only {listed}; got {short(name)}")
    return _part(kind, where, content)


def _rows(kind: type[T], where: str, values: JsonFields) -> tuple[T, ...]:
    rows = values.get(where, [])
    if not isinstance(rows, list | tuple):
        raise ValueError(f"{where} must be a list; got {short(rows)}")
    return tuple(_part(kind, f"{where}.{number}", row) for number, row in enumerate(rows))


def _training(values: JsonFields) -> TrainingCard | None:
    """The file has the fields of the recipe and of the outcome in one object."""
    if "training" not in values:
        return None
    recipe = dict(_object("training", values["training"]))
    start, averaged = recipe.pop("start", None), recipe.pop("averaged", [])
    outcome = {name: recipe.pop(name) for name in OUTCOME if name in recipe}
    for name, value in outcome.items():
        _check(f"training.{name}", value, OUTCOME[name])
    if not isinstance(averaged, list | tuple):
        raise ValueError(f"training.averaged must be a list; got {short(averaged)}")
    return TrainingCard(
        recipe=recipe,
        start=None if start is None else _part(WeightsOrigin, "training.start", start),
        averaged=tuple(
            _averaged(f"training.averaged.{n}", entry) for n, entry in enumerate(averaged)
        ),
        **outcome,
    )


def _averaged(where: str, values: Any) -> AveragedWith:
    content = _object(where, values)
    _check(f"{where}.share", content.get("share"), float)
    origin = _part(WeightsOrigin, f"{where}.with", content.get("with"))
    return AveragedWith(origin, content["share"])


def _measurement(where: str, values: Any) -> Measurement:
    """The file has the settings and the figures in one object."""
    content = _object(where, values)
    declared = get_type_hints(Measurement)
    settings = {name: content[name] for name in declared if name in content}
    for name, value in settings.items():
        _check(f"{where}.{name}", value, declared[name])
    if "protocol" not in settings:
        raise ValueError(f"it lacks {where}.protocol")
    figures = {
        **content,
        "groups": _numbers(f"{where}.groups", content.get("groups", {})),
        "risk_coverage": _rows(RiskCoverage, "risk_coverage", content),
    }
    return Measurement(_part(Evaluation, where, figures), **settings)


def _numbers(where: str, values: Any) -> dict[str, float]:
    content = _object(where, values)
    for name, value in content.items():
        _check(f"{where}.{name}", value, float)
    return dict(content)


def _sentences(where: str, values: Any) -> tuple[str, ...]:
    if not isinstance(values, list | tuple) or not all(
        isinstance(sentence, str) for sentence in values
    ):
        raise ValueError(f"{where} must be a list of sentences; got {short(values)}")
    return tuple(values)


def _object(where: str, values: Any) -> JsonFields:
    if not isinstance(values, Mapping):
        raise ValueError(f"{where} must be an object of fields; got {short(values)}")
    return values


def _check(where: str, value: Any, declared: Any) -> None:
    rule = RULES.get(where)
    if rule is not None and not rule.holds(value):
        raise ValueError(f"{where} must be {rule.words}; got {short(value)}")
    if rule is None and not is_of(value, declared):
        raise ValueError(f"{where} must be {kind_in_words(declared)}; got {short(value)}")
