"""The table of architectures: what is built from a configuration, and what its outputs mean.

A row is all that training, export, evaluation and use need to know of a network. The light side
of the package holds the last column again, in `zoo.READINGS`, since it imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from radialbeams.nn.bic import BIC, BICConfig, RingBIC
from radialbeams.nn.convolutional import Convolutional, ConvolutionalConfig
from radialbeams.nn.stored import short

Config = BICConfig | ConvolutionalConfig
Network = BIC | RingBIC | Convolutional

# One unit vector and the circle loss, or a posterior over the circle and the ring's loss.
Reading = Literal["unit", "posterior"]


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
    values = config if isinstance(config, Mapping) else config.to_dict()
    # The paper's network and the ring share a configuration, in which the decoder tells them apart.
    name = values.get("architecture", values.get("decoder", "lstm"))
    if not isinstance(name, str) or name not in ARCHITECTURES:
        raise ValueError(
            f"A model's architecture is one of {', '.join(ARCHITECTURES)}; got {short(name)}."
        )
    return ARCHITECTURES[name]


def with_beams(config: Config) -> BICConfig:
    """The configuration itself, of a network that reads beams; an error for any other."""
    if not isinstance(config, BICConfig):
        raise TypeError(
            f"Expected a network that reads beams; got {config.architecture}, which has none."
        )
    return config


def parse_config(values: Mapping[str, Any]) -> Config:
    return architecture(values).parse(values)


def build(config: Config) -> Network:
    return architecture(config).build(config)
