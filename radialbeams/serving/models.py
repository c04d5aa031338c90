"""The available models, as the API and the page describe them."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache

from radialbeams import zoo
from radialbeams.cards import Card
from radialbeams.defaults import thresholds_of
from radialbeams.posterior import UPRIGHT, WITHIN
from radialbeams.stored import JsonDict

SHOWN = ("summary", "licence", "works_on", "fails_on")


@cache
def card_of(model: str) -> Card:
    """The card of a model, cached because every file needs it."""
    return zoo.find(model).card


def described(name: str) -> JsonDict:
    """What a client needs to choose a model, and what a browser needs to run it."""
    card = zoo.find(name).card
    network, config = card.network, card.config
    return {
        "name": name,
        **{key: getattr(card, key) for key in SHOWN if getattr(card, key)},
        "reading": network.reading,
        "bins": network.num_bins,
        "view": {
            "protocol": card.protocol.name,
            "parent_size": card.parent_size,
            "view_size": network.view_size,
            "channels": network.channels,
            "sigma": card.protocol.sigma,
            "reach": card.protocol.reach,
        },
        "beams": {
            "num_beams": config.get("num_beams"),
            "beam_length": config.get("beam_length"),
            "epsilon": config.get("epsilon", 0),
        },
        "calibration": card.calibration._asdict(),
        "looks": {"below": 0.0} if card.looks is None else asdict(card.looks),
        "thresholds": asdict(thresholds_of(card)),
        "within": WITHIN,
        "upright_within": UPRIGHT,
    }
