"""The table of architectures: what is built from a configuration, and what its outputs mean.

A row is all that training, export, evaluation and use need to know of a network. What the light
side needs of it is written onto the card.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from radialbeams.cards import NetworkCard, Reading
from radialbeams.nn.bic import BIC, BICConfig, RingBIC
from radialbeams.nn.convolutional import Convolutional, ConvolutionalConfig
from radialbeams.stored import short

Config = BICConfig | ConvolutionalConfig
Network = BIC | RingBIC | Convolutional


@dataclass(frozen=True)
class Architecture:
    """One row: `parse` makes a configuration of a card's, `build` a network of that."""

    parse: Callable[[Mapping[str, Any]], Config]
    build: Callable[[Any], Network]
    reading: Reading
    defaults: Mapping[str, Any]  # of a configuration, where no recipe says otherwise


ARCHITECTURES: dict[str, Architecture] = {
    "lstm": Architecture(BICConfig.from_dict, BIC, "unit", {}),
    "ring": Architecture(
        BICConfig.from_dict,
        RingBIC,
        "posterior",
        {
            "decoder": "ring",
            "sampler": "polar",
            "num_beams": 48,
            "beam_length": 32,
            "epsilon": 0,
        },
    ),
    "convolutional": Architecture(
        ConvolutionalConfig.from_dict,
        Convolutional,
        "posterior",
        {"architecture": "convolutional"},
    ),
}


def architecture(config: Config | Mapping[str, Any]) -> Architecture:
    """The row of a configuration, or of the dictionary that a card or a recipe has for it."""
    return ARCHITECTURES[architecture_name(config)]


def architecture_name(config: Config | Mapping[str, Any]) -> str:
    values = config if isinstance(config, Mapping) else config.to_dict()
    # The paper's network and the ring share a configuration, in which the decoder tells them apart.
    name = values.get("architecture", values.get("decoder", "lstm"))
    if not isinstance(name, str) or name not in ARCHITECTURES:
        raise ValueError(
            f"A model's architecture is one of {', '.join(ARCHITECTURES)}; got {short(name)}."
        )
    return name


def with_beams(config: Config) -> BICConfig:
    """The configuration itself, of a network that reads beams; an error for any other."""
    if not isinstance(config, BICConfig):
        raise TypeError(
            f"Expected a network that reads beams; got {config.architecture}, which has none."
        )
    return config


def parse_config(values: Mapping[str, Any]) -> Config:
    return architecture(values).parse(values)


def network_card(config: Config) -> NetworkCard:
    """What the light side needs to know to run the exported network."""
    name = architecture_name(config)
    sizes = (config.view_size, config.channels, config.num_bins)
    return NetworkCard(name, ARCHITECTURES[name].reading, *sizes)


def build(config: Config) -> Network:
    return architecture(config).build(config)
