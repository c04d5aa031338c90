"""Weights on disk: safetensors and a JSON card with everything needed to use them.

The card `bic.coil100.json` describes `bic.coil100.safetensors` and, once exported,
`bic.coil100.onnx`. Files are written atomically.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from radialbeams.cards import Card, Hashes, ViewProtocol, WeightsOrigin
from radialbeams.cards import write as write_card
from radialbeams.files import sha256, write_whole
from radialbeams.nn.architectures import Network, network_card
from radialbeams.nn.pretrained import DamagedWeights, load_model, read_card
from radialbeams.stored import JsonFields

# Reading is in `nn.pretrained`, since models are also read without training.
__all__ = [
    "DamagedWeights",
    "load_model",
    "new_card",
    "origin_of",
    "pick_device",
    "read_card",
    "save_model",
    "sha256",
    "write_card",
    "write_json",
    "write_tensors",
    "write_whole",
]


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
    # safetensors needs contiguous tensors that share no memory.
    owned = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    write_whole(path, lambda partial: save_file(owned, partial, metadata=metadata))


def write_json(path: Path, values: JsonFields) -> None:
    text = json.dumps(values, indent=1, ensure_ascii=False) + "\n"
    write_whole(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def new_card(model: Network, protocol: ViewProtocol, name: str = "") -> Card:
    """A card with the network and the protocol only."""
    return Card(network_card(model.config), model.config.to_dict(), protocol, name)


def origin_of(card: Card) -> WeightsOrigin:
    """The name and hash by which other cards refer to these weights."""
    return WeightsOrigin(card.name, card.sha256.weights)


def save_model(stem: Path, model: Network, card: Card, *, half: bool = False) -> Card:
    """Writes STEM.safetensors and STEM.json; returns the card with config and sha256 filled in.

    With `half`, matrices and kernels are rounded to 16 bits, in the file and in the model.
    """
    weights = stem.with_name(stem.name + ".safetensors")
    tensors = model.state_dict()
    if _is_folded(model):
        raise ValueError(
            "This network was folded for inference: its norms are gone, and no config describes "
            "it. Save the network before folding."
        )
    if half:
        tensors = {name: _rounded(tensor) for name, tensor in tensors.items()}
        model.load_state_dict(tensors)
    write_tensors(weights, tensors, {"format": "radialbeams"})
    full = replace(
        card,
        network=network_card(model.config),
        config=model.config.to_dict(),
        parameters=sum(p.numel() for p in model.parameters()),
        sha256=Hashes(safetensors=sha256(weights)),
    )
    write_card(stem.with_name(stem.name + ".json"), full)
    return full


def _is_folded(network: nn.Module) -> bool:
    """Whether `front.folding` made it: it has an identity in place of a norm."""
    norms = [part for name, part in network.named_modules() if name.endswith("_norm")]
    return any(isinstance(part, nn.Identity) for part in norms)


def _rounded(tensor: Tensor) -> Tensor:
    """In 16 bits, except for vectors: they are small, and a variance may underflow."""
    return tensor.half() if tensor.is_floating_point() and tensor.ndim > 1 else tensor


def pick_device(name: str = "auto") -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name.partition(":")[0] not in ("cpu", "cuda"):
        raise ValueError(f"Expected auto, cpu or cuda as a device; got {name!r}.")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("Expected a GPU for cuda, but torch finds none. Use --devices cpu.")
    return device
