"""The table of architectures, and the column of it that the light side holds again."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from radialbeams import zoo
from radialbeams.nn.architectures import (
    ARCHITECTURES,
    architecture,
    build,
    network_card,
    parse_config,
    with_beams,
)
from radialbeams.nn.bic import BIC, BICConfig
from radialbeams.nn.convolutional import Convolutional, ConvolutionalConfig
from radialbeams.nn.ring_network import RingBIC

SMALL: dict[str, dict[str, Any]] = {
    "lstm": {"view_size": 40, "num_beams": 8, "beam_length": 16, "latent": 8},
    "ring": {"architecture": "ring", "view_size": 40, "num_beams": 8, "beam_length": 16},
    "convolutional": {"architecture": "convolutional", "view_size": 32, "num_bins": 8},
}


@pytest.mark.parametrize(
    ("name", "network"), [("lstm", BIC), ("ring", RingBIC), ("convolutional", Convolutional)]
)
def test_a_row_builds_its_network(name: str, network: type) -> None:
    made = build(parse_config(SMALL[name]))
    assert type(made) is network
    assert architecture(made.config) is ARCHITECTURES[name]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_network_gives_what_its_row_says(name: str) -> None:
    made = build(parse_config(SMALL[name])).eval()
    size = made.config.view_size
    outputs = made(torch.rand(2, 3, size, size))
    if ARCHITECTURES[name].reading == "unit":
        assert outputs.shape == (2, 2)
    else:
        assert [output.shape for output in outputs] == 2 * [(2, made.config.num_bins)]
    assert made.angles(torch.rand(2, 3, size, size)).shape == (2,)


@pytest.mark.parametrize("name", zoo.names())
def test_a_shipped_card_names_a_row(name: str) -> None:
    card = zoo.find(name).card
    assert network_card(parse_config(card.config)) == card.network


def test_a_configuration_without_a_name_is_the_papers() -> None:
    assert parse_config({}) == BICConfig(hub="mean")


def test_an_unknown_architecture_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="one of lstm, ring, convolutional; got 'vit'"):
        parse_config({"architecture": "vit"})


def test_a_network_without_beams_is_refused_where_beams_are_read() -> None:
    assert with_beams(BICConfig()) == BICConfig()
    with pytest.raises(TypeError, match="got convolutional, which has none"):
        with_beams(ConvolutionalConfig())
