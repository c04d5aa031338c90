"""Loads trained networks from disk, with weights that match the sha256 on their JSON card.

The weights are in STEM.safetensors. If a published model has no such file, its ONNX file contains
the same numbers, so that the package does not store them twice.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from radialbeams import cards
from radialbeams.cards import Card
from radialbeams.files import sha256
from radialbeams.nn.architectures import Config, Network, build, network_card, parse_config
from radialbeams.nn.onnx_weights import read_weights


class DamagedWeights(ValueError):
    """The weights do not match their card."""


def read_card(path: Path) -> Card:
    if not path.is_file():
        raise FileNotFoundError(
            f"Expected a model card at {path}; there is none. "
            "Give a folder that `radialbeams train` has finished, or a pretrained model."
        )
    return cards.read(path)


def load_model(stem: Path) -> tuple[Network, Card]:
    """Loads the weights of STEM into a model, strictly: names, shapes and sha256 must match."""
    card = read_card(stem.with_name(stem.name + ".json"))
    once = card.sha256.safetensors is None and card.sha256.onnx is not None
    weights = stem.with_name(stem.name + (".onnx" if once else ".safetensors"))
    if not weights.is_file():
        raise FileNotFoundError(
            f"Expected weights at {weights}; there are none. An exported ONNX file has no "
            "safetensors: give the folder of the run instead."
        )
    if sha256(weights) != card.sha256.weights:
        raise DamagedWeights(
            f"{weights} does not have the sha256 on its card, so it is damaged or was replaced. "
            "Copy the model again, weights and card together."
        )
    config = parse_config(card.config)
    if network_card(config) != card.network:
        raise DamagedWeights(
            f"The card of {weights} contradicts itself: its config does not match its network. "
            "Copy the model again, weights and card together."
        )
    if once:
        tensors = _from_onnx(weights, config)
    else:
        _check_shapes(weights, config)
        tensors = load_file(weights)
    model = build(config)
    if not all(torch.isfinite(tensor).all() for tensor in tensors.values()):
        raise DamagedWeights(
            f"{weights} contains values that are NaN or infinite. Train or copy it again."
        )
    model.load_state_dict(tensors, strict=True)
    return model.eval(), card


def _from_onnx(path: Path, config: Config) -> dict[str, Tensor]:
    """Returns the tensors that the config describes.

    An ONNX file lacks the step counters of norms; they start at 0, which only training notices.
    """
    try:
        found = read_weights(path)
    except ValueError as error:
        raise DamagedWeights(
            f"{path} cannot be read: {error}. Copy the model again, weights and card together."
        ) from error
    expected = build(config).state_dict()
    tensors = {
        name: found.get(name, value) if value.is_floating_point() else value
        for name, value in expected.items()
    }
    missing = [n for n, v in expected.items() if v.is_floating_point() and n not in found]
    if missing or any(tensors[name].shape != value.shape for name, value in expected.items()):
        raise DamagedWeights(
            f"{path} does not hold the tensors that the config on its card describes. "
            "Copy the model again, weights and card together."
        )
    return tensors


def _check_shapes(weights: Path, config: Config) -> None:
    """Checks, before allocating memory, that the file has exactly the tensors of the config."""
    with torch.device("meta"):
        expected = {name: tuple(one.shape) for name, one in build(config).state_dict().items()}
    try:
        with safe_open(weights, framework="pt") as file:
            names = list(file.keys())
            found = {name: tuple(file.get_slice(name).get_shape()) for name in names}
    except SafetensorError as error:
        raise DamagedWeights(
            f"{weights} is not a safetensors file. Copy the model again, weights and card together."
        ) from error
    if found != expected:
        raise DamagedWeights(
            f"{weights} has other tensors than the config on its card describes. "
            "Copy the model again, weights and card together."
        )
