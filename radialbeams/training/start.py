"""Weights that a run begins with: those of an earlier run, or of a pretrained encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from radialbeams.cards import WeightsOrigin
from radialbeams.nn.architectures import Config, Network
from radialbeams.nn.convolutional import Convolutional, load_encoder
from radialbeams.training.recipe import Recipe
from radialbeams.training.weights import load_model, origin_of, sha256

TRAINING_ONLY = frozenset({"drop_path", "dropout"})
ANY_SIZE = frozenset({"convolutional"})  # architectures whose weights fit views of every size


def begin_with(model: Network, start: Path, recipe: Recipe) -> WeightsOrigin:
    """Fills the model from STEM of an earlier run, or from the file of an encoder's weights."""
    if start.suffix == ".safetensors":
        return _begin_with_encoder(model, start)
    earlier, card = load_model(start)
    if _shape(earlier.config) != _shape(recipe.model):
        raise ValueError(
            f"{start} holds another network than the recipe's. Take its config as the "
            "recipe's model, or begin without it."
        )
    model.load_state_dict(earlier.state_dict())
    return origin_of(card)


def _shape(config: Config) -> dict[str, Any]:
    """The settings that the weights depend on."""
    free = TRAINING_ONLY | ({"view_size"} if config.architecture in ANY_SIZE else frozenset())
    return {name: value for name, value in config.to_dict().items() if name not in free}


def _begin_with_encoder(model: Network, path: Path) -> WeightsOrigin:
    if not isinstance(model, Convolutional):
        raise ValueError(
            f"{path} holds a pretrained encoder, which only the convolutional network has. "
            "Give RUN/model of an earlier run, or begin without it."
        )
    load_encoder(model, load_file(path))
    return WeightsOrigin(path.stem, sha256(path))
