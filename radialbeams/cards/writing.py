"""Converts a card to JSON. Empty fields are left out."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from radialbeams.cards.card import Card, JsonObject, Measurement, TrainingCard
from radialbeams.files import write_whole
from radialbeams.posterior import Calibration
from radialbeams.stored import JsonDict

# The order of the fields in the file: what readers look for first comes first.
ORDER = (
    *("version", "name", "summary", "licence", "works_on", "fails_on"),
    *("data", "protocol", "network", "config", "training"),
    *("calibration", "calibrated", "looks", "abstain", "trust", "documents", "least_confident"),
    *("parameters", "sha256", "parity", "metrics", "end_to_end", "cost"),
)


def write(path: Path, card: Card) -> None:
    """Writes the card atomically."""
    text = json.dumps(to_json(card), indent=1, ensure_ascii=False) + "\n"
    write_whole(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def to_json(card: Card) -> JsonDict:
    """The JSON that `reading.parse` reads, always in the current version of the format."""
    values = {name: _plain(getattr(card, name)) for name in ORDER}
    values["metrics"] = {name: measurement(measured) for name, measured in card.metrics.items()}
    values["training"] = None if card.training is None else _training(card.training)
    if card.calibration == Calibration():  # the default, so none was fitted
        values["calibration"] = None
    return {
        **{name: value for name, value in values.items() if value not in (None, "", {}, [])},
        **card.other,
    }


def measurement(measured: Measurement) -> JsonDict:
    """Settings and figures in one object, as `radialbeams evaluate --json` prints them."""
    quarters = {"quarter": measured.quarter, "quarter_plus_1": measured.quarter_plus_1}
    named = {} if measured.data is None else {"data": measured.data}
    return {
        **named,
        "split": measured.split,
        "protocol": measured.protocol,
        "seeds": measured.seeds,
        "jpeg": measured.jpeg,
        **measured.evaluation.to_dict(),
        **{name: value for name, value in quarters.items() if value is not None},
    }


def _training(training: TrainingCard) -> JsonDict:
    """The fields of the recipe and of the outcome in one object."""
    values = _plain(training)
    recipe: JsonObject = training.recipe
    outcome = {name: value for name, value in values.items() if name != "recipe"}
    averaged = [{"with": step["origin"], "share": step["share"]} for step in values["averaged"]]
    outcome["averaged"] = averaged or None
    return {**recipe, **{name: value for name, value in outcome.items() if value is not None}}


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return value._asdict()
    if is_dataclass(value) and not isinstance(value, type):
        return {name: part for name, part in asdict(value).items() if part is not None}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return dict(value) if hasattr(value, "keys") else value
