"""The models on offer, as the API and the page describe them. Cards are read only here."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from radialbeams import zoo
from radialbeams.batch import Job, thresholds_of
from radialbeams.posterior import UPRIGHT, WITHIN, Thresholds

SHOWN = ("summary", "licence", "works_on", "fails_on")


@cache
def thresholds(model: str) -> Thresholds:
    """From where on a picture is turned, as for the command `upright`."""
    return thresholds_of(zoo.find(model).card)


def with_thresholds(job: Job, confidence: float | None, angle: float | None) -> Job:
    """The job with a request's thresholds, or those of the card, as the command has them."""
    card = thresholds(job.model)
    return replace(
        job,
        min_confidence=card.confidence if confidence is None else confidence,
        min_angle=card.angle if angle is None else angle,
        # A confidence in the request replaces both thresholds of the card.
        max_upright=card.upright if confidence is None else job.max_upright,
    )


def described(name: str) -> dict[str, Any]:
    """What a client needs to choose a model, and a browser to run it by itself."""
    card = zoo.find(name).card
    config, protocol = card["config"], card["protocol"]
    least = thresholds_of(card)
    return {
        "name": name,
        **{key: card[key] for key in SHOWN if key in card},
        "reading": zoo.reading(card),
        "bins": zoo.bins(card),
        "view": {
            "protocol": protocol["name"],
            "parent_size": protocol.get("parent_size", config["view_size"]),
            "view_size": config["view_size"],
            "channels": config["channels"],
            "sigma": protocol.get("sigma"),
        },
        "beams": {
            "num_beams": config.get("num_beams"),
            "beam_length": config.get("beam_length"),
            "epsilon": config.get("epsilon", 0),
        },
        "calibration": {"temperature": 1.0, "spread": 0.0, **card.get("calibration", {})},
        "looks_below": card.get("looks", {}).get("below", 0.0),
        "thresholds": least._asdict(),
        "within": WITHIN,
        "upright_within": UPRIGHT,
    }
