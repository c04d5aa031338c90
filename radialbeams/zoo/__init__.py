"""The pretrained models: NAME.onnx, to run and to train on, and the card NAME.json."""

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
LARGEST_ONNX = 2**30  # bytes; the pretrained models have at most twelve million


class ModelNotFound(ValueError):
    """There is no model with that name, or no file at that path."""


@dataclass(frozen=True)
class Model:
    """A model that can be run: its card, and the path of its files."""

    name: str
    card: Card
    stem: Path  # the common path of its files, without their extensions

    @property
    def onnx(self) -> Path:
        return self.stem.with_name(self.stem.name + ".onnx")


def names() -> list[str]:
    return sorted(path.name.removesuffix(".json") for path in FOLDER.glob("*.json"))


def find(model: str | Path) -> Model:
    """A pretrained model by name, or your own by the path of its run folder or ONNX file."""
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
        f"Expected the name of a model or the path of a run; got {name!r}. "
        f"Pretrained models: {', '.join(names())}."
        + "".join(f" Did you mean {one}?" for one in near)
    )


def _open(stem: Path, name: str) -> Model:
    card = stem.with_name(stem.name + ".json")
    if not card.is_file():
        raise ModelNotFound(
            f"Expected a model card at {card}; there is none. Give a folder that "
            "`radialbeams train` has finished, or an ONNX file next to its card."
        )
    return Model(name, cards.read(card), stem)


def verified_onnx(model: Model) -> bytes:
    """The bytes of the ONNX file, after checking the sha256 on its card."""
    if not model.onnx.is_file():
        raise ModelNotFound(
            f"Expected {model.onnx}; it does not exist. Create it with "
            f"`radialbeams export {model.name} {model.onnx}`."
        )
    if model.onnx.stat().st_size > LARGEST_ONNX:
        raise DamagedModel(
            f"{model.onnx} is larger than {LARGEST_ONNX // 2**20} MiB, so it is not a model of "
            "radialbeams. Copy the model again, weights and card together."
        )
    content = model.onnx.read_bytes()
    expected = model.card.sha256.onnx
    found = sha256(content)
    if found != expected:
        raise DamagedModel(
            f"{model.onnx} has sha256 {found[:12]}…, but its card has {str(expected)[:12]}…: it is "
            "damaged or was replaced. Copy the model again, weights and card together."
        )
    return content
