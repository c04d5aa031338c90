"""What a finished model is worth: calibration, thresholds and figures for its card.

Published models and models of one's own folder get them by the same functions. Everything is
measured on held-out images; the calibration error crosswise, each half of them with the
calibration that was fitted on the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from radialbeams.cards import Card, Evaluation, Measurement, RiskCoverage, UncertainObject
from radialbeams.files import bucket, sha256
from radialbeams.nn.architectures import Network
from radialbeams.training.calibrate import crosswise_error, fitted, halves, outputs
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import evaluate, predict_with
from radialbeams.training.thresholds import ENOUGH, abstention_of, worse_crosswise
from radialbeams.training.views import Views, views_of

FEW = 40  # names, below which a hash may put nearly all of them into one half
DECIMALS = 4


def calibrated(
    card: Card, model: Network, images: ImageSet, *, by_group: bool = False, seeds: int = 2
) -> Card:
    """The card with calibration and thresholds from held-out images, and what to expect of them.

    Errors on views of one object or person are correlated: with `by_group`, the calibration error
    is also measured with whole groups in one half, which bounds the effect of new ones. So is the
    share of upright images that thresholds make worse which were chosen on the other half: how far
    thresholds from so few images can be relied on.
    """
    found = outputs(model, images, views_of(card.protocol, card.network.view_size), seeds)
    calibration = fitted(found)
    parts = halves(found, in_first_half(images.keys) * seeds)
    measured: dict[str, float] = {
        "expected_error": crosswise_error(found, parts),
        "n": seeds * len(images),
    }
    if by_group and len(set(images.groups)) > 1:
        parts = halves(found, in_first_half(images.groups) * seeds)
        measured["expected_error_by_object"] = crosswise_error(found, parts)
    careful = len(images) < ENOUGH
    measured["expected_upright_worse"] = worse_crosswise(found, parts, careful=careful)
    return replace(
        card,
        calibration=calibration,
        calibrated=rounded_values(measured),
        abstain=abstention_of(found, calibration, careful=careful),
    )


def first_half(name: str) -> bool:
    # With a prefix of its own: the plain hash of a key already decides that it is held out.
    return bucket(f"half of {name}", 2) == 0


def in_first_half(names: Sequence[str]) -> list[bool]:
    """For each name whether it is in the first half, the same for equal names.

    Few names are halved in the order of their hashes, so that neither half is empty.
    """
    distinct = sorted(
        set(names), key=lambda name: sha256(f"half of {name}".encode(errors="surrogateescape"))
    )
    if len(distinct) >= FEW:
        return [first_half(name) for name in names]
    first = set(distinct[: (len(distinct) + 1) // 2])
    return [name in first for name in names]


def least_confident(
    card: Card, model: Network, images: ImageSet, views: Views
) -> tuple[UncertainObject, ...]:
    """The ten objects of whose angle the model is least sure, with how far off it is."""
    predict: Any = partial(predict_with, model, **card.calibration._asdict())
    rows = []
    for name in sorted(set(images.groups)):
        members = images.select([i for i, group in enumerate(images.groups) if group == name])
        sure: list[float] = []

        def noted(batch: Any, sure: list[float] = sure) -> Any:
            angles, confidences = predict(batch)
            sure += confidences.tolist()
            return angles

        result = evaluate(noted, members, views, seeds=3)
        confidence = round(float(np.mean(sure)), DECIMALS)
        rows.append(UncertainObject(name, confidence, round(result.mean, DECIMALS)))
    return tuple(sorted(rows, key=lambda row: row.confidence)[:10])


def rounded(measured: Measurement) -> Measurement:
    """To four decimals, as on the card."""
    figures = rounded_values(measured.evaluation.to_dict())
    curve = tuple(RiskCoverage(**point) for point in figures.pop("risk_coverage"))
    return replace(measured, evaluation=Evaluation(**figures, risk_coverage=curve))


def rounded_values(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DECIMALS)
    if isinstance(value, dict):
        return {name: rounded_values(part) for name, part in value.items()}
    return [rounded_values(part) for part in value] if isinstance(value, list) else value
