"""The shipped models: NAME.onnx to run, NAME.safetensors to train on, NAME.json to know them by."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from radialbeams import cards
from radialbeams.cards import Card, DamagedModel
from radialbeams.files import sha256

__all__ = ["DEFAULT", "FOLDER", "DamagedModel", "Model", "ModelNotFound"]
__all__ += ["find", "names", "verified_onnx"]

FOLDER = Path(__file__).parent
DEFAULT = "general"
LARGEST_ONNX = 2**30  # bytes; the shipped ones have at most twelve million


class ModelNotFound(ValueError):
    """No model of that name, or no file at that path."""


@dataclass(frozen=True)
class Model:
    """A model that can be run: its card, and where its files lie."""

    name: str
    card: Card
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
    near = get_close_matches(name, names(), 1)
    raise ModelNotFound(
        f"Expected a model's name or the path of a run; got {name!r}. "
        f"Shipped models: {', '.join(names())}." + "".join(f" Did you mean {one}?" for one in near)
    )


def _open(stem: Path, name: str) -> Model:
    card = stem.with_name(stem.name + ".json")
    if not card.is_file():
        raise ModelNotFound(
            f"Expected a model card at {card}; there is none. Name a run folder that "
            "`radialbeams train` finished, or an ONNX file with its card beside it."
        )
    return Model(name, cards.read(card), stem)


def verified_onnx(model: Model) -> bytes:
    """The bytes of the ONNX file, once they have the sha256 that the card names."""
    if not model.onnx.is_file():
        raise ModelNotFound(
            f"Expected {model.onnx}; there is none. Make it with "
            f"`radialbeams export {model.name} {model.onnx}`."
        )
    if model.onnx.stat().st_size > LARGEST_ONNX:
        raise DamagedModel(
            f"{model.onnx} is larger than {LARGEST_ONNX // 2**20} MiB, so it is no model of ours. "
            "Copy the model again, weights and card together."
        )
    content = model.onnx.read_bytes()
    expected = model.card.sha256.onnx
    found = sha256(content)
    if found != expected:
        raise DamagedModel(
            f"{model.onnx} has sha256 {found[:12]}…, its card says {str(expected)[:12]}…: it is "
            "damaged or was exchanged. Copy the model again, weights and card together."
        )
    return content
