"""Trained networks from disk: safetensors that have the sha256 on the JSON card beside them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from radialbeams.nn.architectures import Network, build, parse_config


class DamagedWeights(ValueError):
    """The weights are not the ones that their card describes."""


def read_card(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(
            f"Expected a model card at {path}; there is none. "
            "Name a run folder that `radialbeams train` finished, or a shipped model."
        )
    card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return card


def load_model(stem: Path) -> tuple[Network, dict[str, Any]]:
    """STEM.safetensors into a model, strictly: other names, shapes or bytes are an error."""
    card = read_card(stem.with_name(stem.name + ".json"))
    weights = stem.with_name(stem.name + ".safetensors")
    if not weights.is_file():
        raise FileNotFoundError(
            f"Expected weights at {weights}; there are none. An exported ONNX file goes without "
            "them: name the run's folder instead."
        )
    if sha256(weights) != card["sha256"]["safetensors"]:
        raise DamagedWeights(
            f"{weights} does not have the sha256 that its card names, so it is damaged or was "
            "exchanged. Copy the model again, weights and card together."
        )
    model = build(parse_config(card["config"]))
    try:
        model.load_state_dict(load_file(weights), strict=True)
    except RuntimeError as error:
        raise DamagedWeights(
            f"{weights} holds other tensors than the config on its card describes. "
            "Copy the model again, weights and card together."
        ) from error
    return model.eval(), card


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
