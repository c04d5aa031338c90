"""The shipped models: NAME.onnx to run, NAME.safetensors to train on, NAME.json to know them by."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
DEFAULT = "ring"

# What a card must say for its model to be run.
NEEDED = {"config": ("view_size", "channels", "num_beams", "decoder"), "protocol": ("name",)}
# What a network without beams says instead.
INSTEAD = {"num_beams": "num_bins", "decoder": "architecture"}
# What the outputs of each architecture are; `nn.architectures` has the same column.
READINGS = {"lstm": "unit", "ring": "posterior", "convolutional": "posterior"}


class ModelNotFound(ValueError):
    """No model of that name, or no file at that path."""


class DamagedModel(ValueError):
    """The file is not the one that its card describes."""


@dataclass(frozen=True)
class Model:
    """A model that can be run: its card, and where its files lie."""

    name: str
    card: dict[str, Any]
    stem: Path  # the files' common path without their endings

    @property
    def onnx(self) -> Path:
        return self.stem.with_name(self.stem.name + ".onnx")


def names() -> list[str]:
    return sorted(path.name.removesuffix(".json") for path in FOLDER.glob("*.json"))


def find(model: str | Path) -> Model:
    """A shipped model by its name, or your own by the path of its run folder or ONNX file."""
    name = str(model)
    if name in names():
        return _open(FOLDER / name, name)
    path = Path(model)
    if path.is_dir():
        return _open(path / "model", name)
    if path.suffix in (".onnx", ".safetensors", ".json"):
        return _open(path.with_suffix(""), name)
    raise ModelNotFound(
        f"Expected a model's name or the path of a run; got {name!r}. "
        f"Shipped models: {', '.join(names())}."
    )


def _open(stem: Path, name: str) -> Model:
    card = stem.with_name(stem.name + ".json")
    if not card.is_file():
        raise ModelNotFound(
            f"Expected a model card at {card}; there is none. Name a run folder that "
            "`radialbeams train` finished, or an ONNX file with its card beside it."
        )
    try:
        content = json.loads(card.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DamagedModel(f"{card} is not a model card: {error}.") from error
    missing = _missing(content)
    if missing:
        raise DamagedModel(f"{card} is not a model card: it does not say {', '.join(missing)}.")
    return Model(name, content, stem)


def _missing(card: Any) -> list[str]:
    """What running a model needs and its card does not say."""
    known = {name: _part(card, name) for name in NEEDED}
    needed = [f"{name}.{field}" for name, fields in NEEDED.items() for field in fields]
    if known["protocol"].get("name") == "leakfree":
        needed.append("protocol.parent_size")
    return [path for path in needed if not _names(known, *path.split("."))]


def _names(known: dict[str, dict[str, Any]], part: str, field: str) -> bool:
    return field in known[part] or INSTEAD.get(field) in known[part]


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


def _part(card: Any, name: str) -> dict[str, Any]:
    part = card.get(name) if isinstance(card, dict) else None
    return part if isinstance(part, dict) else {}


def verified_onnx(model: Model) -> bytes:
    """The bytes of the ONNX file, once they have the sha256 that the card names."""
    if not model.onnx.is_file():
        raise ModelNotFound(
            f"Expected {model.onnx}; there is none. Make it with "
            f"`radialbeams export {model.name} {model.onnx}`."
        )
    content = model.onnx.read_bytes()
    expected = model.card.get("sha256", {}).get("onnx")
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise DamagedModel(
            f"{model.onnx} has sha256 {found[:12]}…, its card says {str(expected)[:12]}…: it is "
            "damaged or was exchanged. Copy the model again, weights and card together."
        )
    return content
