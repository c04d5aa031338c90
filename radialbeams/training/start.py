"""Initial weights of a run: those of an earlier run, or of a pretrained encoder."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from radialbeams.cards import WeightsOrigin
from radialbeams.nn.architectures import Config, Network
from radialbeams.nn.convolutional import Convolutional, load_encoder
from radialbeams.stored import JsonDict
from radialbeams.training.recipe import Recipe
from radialbeams.training.weights import load_model, origin_of, sha256

TRAINING_ONLY = frozenset({"drop_path", "dropout"})  # settings that the weights do not depend on
# Settings that an architecture's weights fit at every value.
FREE = {
    "convolutional": frozenset({"view_size"}),
    "ring": frozenset({"num_beams"}),  # once its attention by distance is resampled
}
DISTANCES = ".apart"  # the end of that tensor's name


def begin_with(model: Network, start: Path, recipe: Recipe) -> WeightsOrigin:
    """Loads weights from the STEM of an earlier run, or from an encoder's safetensors file."""
    if start.suffix == ".safetensors":
        return _begin_with_encoder(model, start)
    earlier, card = load_model(start)
    if _shape(earlier.config) != _shape(recipe.model):
        raise ValueError(
            f"{start} holds a different network than the recipe's. Use its config as the "
            "recipe's model, or start without it."
        )
    model.load_state_dict(_fitted(earlier.state_dict(), recipe.model))
    return origin_of(card)


def _fitted(weights: dict[str, Tensor], config: Config) -> dict[str, Tensor]:
    """The weights, with the attention of a ring by distance for its number of beams."""
    return {
        name: resampled(value, config.num_bins) if name.endswith(DISTANCES) else value
        for name, value in weights.items()
    }


def resampled(by_distance: Tensor, beams: int) -> Tensor:
    """(heads, earlier |B|) → (heads, |B|): linear between distances around the circle."""
    earlier = by_distance.shape[1]
    place = torch.arange(beams) * (earlier / beams)
    low = place.floor().long()
    share = (place - low).to(by_distance)
    return by_distance[:, low] * (1 - share) + by_distance[:, (low + 1) % earlier] * share


def _shape(config: Config) -> JsonDict:
    """The settings that determine the weights' shapes."""
    free = TRAINING_ONLY | FREE.get(config.architecture, frozenset())
    return {name: value for name, value in config.to_dict().items() if name not in free}


def _begin_with_encoder(model: Network, path: Path) -> WeightsOrigin:
    if not isinstance(model, Convolutional):
        raise ValueError(
            f"{path} holds a pretrained encoder, which only the convolutional network has. "
            "Pass RUN/model of an earlier run, or start without it."
        )
    load_encoder(model, load_file(path))
    return WeightsOrigin(path.stem, sha256(path))
