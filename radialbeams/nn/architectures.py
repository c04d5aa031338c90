"""The table of networks. Training, export, evaluation and use know a network only by its row.

To add a network, write it in a separate file and add its row here. Its card holds what inference
without torch needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from radialbeams.cards import JsonObject, NetworkCard, Reading
from radialbeams.nn.beam_network import BeamConfig
from radialbeams.nn.bic import BIC, BICConfig, bic_loss
from radialbeams.nn.convolutional import Convolutional, ConvolutionalConfig
from radialbeams.nn.first_format import as_now
from radialbeams.nn.losses import Loss
from radialbeams.nn.network import Network, NetworkConfig
from radialbeams.nn.posterior import posterior_loss
from radialbeams.nn.ring_export import ExportedRing
from radialbeams.nn.ring_network import RingBIC, RingConfig
from radialbeams.nn.rotation import largest_view
from radialbeams.stored import JsonFields, short

__all__ = ["ARCHITECTURES", "Architecture", "Config", "Network", "architecture", "build"]
__all__ += ["network_card", "parse_config", "with_beams"]

Config = NetworkConfig


def _unchanged(network: Network) -> Network:
    return network


@dataclass(frozen=True)
class Architecture:
    """One row of the table."""

    config: type[NetworkConfig]
    build: Callable[[Any], Network]  # takes a configuration of that class
    loss: Loss
    reading: Reading  # whether the outputs are a unit vector, or the logits and offsets of bins
    defaults: Callable[[int], JsonObject]  # the recipe's default fields, by the parent size
    has_prior: bool = False  # whether the loss supports the Toeplitz prior
    # The network in the form that is fastest in an ONNX file, with the same tensors.
    exported: Callable[[Any], Network] = _unchanged


def _ring_defaults(parent_size: int) -> JsonObject:
    return {
        "protocol": "leakfree",
        "model": {
            "architecture": "ring",
            "view_size": largest_view(parent_size),
            "sampler": "polar",
            "num_beams": 48,
            "beam_length": 32,
            "epsilon": 0,
        },
        "learning_rate": 3e-3,
        "schedule": "one-cycle",
        "weight_decay": 0.05,
        "average": 0.998,
        "clip": 1.0,
        "augmentation": {"zoom": 0.15, "jitter": 0.2, "noise": 0.02},
    }


def _bic_defaults(parent_size: int) -> JsonObject:
    return {"model": BICConfig.for_images(parent_size).to_dict()}


def _convolutional_defaults(parent_size: int) -> JsonObject:
    size = largest_view(parent_size)
    model: JsonObject = {"architecture": "convolutional", "view_size": size}
    return {**_ring_defaults(parent_size), "model": model}


ARCHITECTURES: dict[str, Architecture] = {
    "lstm": Architecture(BICConfig, BIC, bic_loss, "unit", _bic_defaults, has_prior=True),
    "ring": Architecture(
        RingConfig,
        RingBIC,
        posterior_loss,
        "posterior",
        _ring_defaults,
        exported=ExportedRing.of,
    ),
    "convolutional": Architecture(
        ConvolutionalConfig, Convolutional, posterior_loss, "posterior", _convolutional_defaults
    ),
}


def architecture(config: NetworkConfig | str) -> Architecture:
    """The row for a configuration, or for a name."""
    name = config if isinstance(config, str) else config.architecture
    if name not in ARCHITECTURES:
        raise ValueError(
            f"Expected an architecture, one of {', '.join(ARCHITECTURES)}; got {short(name)}."
        )
    return ARCHITECTURES[name]


def parse_config(values: JsonFields) -> NetworkConfig:
    """The configuration in a card or a recipe, of the current format or the first one."""
    values = as_now(values)
    name = values["architecture"]
    if not isinstance(name, str):
        raise ValueError(
            f"Expected an architecture, one of {', '.join(ARCHITECTURES)}; got {short(name)}."
        )
    return architecture(name).config.from_dict(values)


def build(config: NetworkConfig) -> Network:
    return architecture(config).build(config)


def network_card(config: NetworkConfig) -> NetworkCard:
    """What inference without torch needs to know about the exported network."""
    reading = architecture(config).reading
    sizes = (config.view_size, config.channels, config.num_bins)
    return NetworkCard(config.architecture, reading, *sizes)


def with_beams(config: NetworkConfig) -> BeamConfig:
    """Returns the configuration if its network reads beams; raises TypeError otherwise."""
    if not isinstance(config, BeamConfig):
        raise TypeError(
            f"Expected a network that reads beams; got {config.architecture}, which has none."
        )
    return config
