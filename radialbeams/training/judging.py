"""Calibration, thresholds and figures for the card of a finished model.

Published models and models of users' folders share these functions. Everything is measured on
held-out images. The calibration error is cross-validated: each half of the images is measured with
the calibration that was fitted on the other.
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

FEW = 40  # names; with fewer, a hash may put nearly all of them into one half
DECIMALS = 4


def calibrated(
    card: Card, model: Network, images: ImageSet, *, by_group: bool = False, seeds: int = 2
) -> Card:
    """The card with calibration, thresholds and expected calibration error from held-out images.

    Errors on views of one object or person are correlated. With `by_group`, the calibration error
    is also measured with each group in one half only, as it would be for new objects. So is the
    share of upright images that thresholds from the other half make worse, which shows how far
    thresholds from so few images can be relied on.
    """
    stored = outputs(model, images, views_of(card.protocol, card.network.view_size), seeds)
    calibration = fitted(stored)
    parts = halves(stored, in_first_half(images.keys) * seeds)
    measured: dict[str, float] = {
        "expected_error": crosswise_error(stored, parts),
        "n": seeds * len(images),
    }
    if by_group and len(set(images.groups)) > 1:
        parts = halves(stored, in_first_half(images.groups) * seeds)
        measured["expected_error_by_object"] = crosswise_error(stored, parts)
    careful = len(images) < ENOUGH
    measured["expected_upright_worse"] = worse_crosswise(stored, parts, careful=careful)
    return replace(
        card,
        calibration=calibration,
        calibrated=rounded_values(measured),
        abstain=abstention_of(stored, calibration, careful=careful),
    )


def first_half(name: str) -> bool:
    # The prefix matters: the plain hash of a key already decides whether it is held out.
    return bucket(f"half of {name}", 2) == 0


def in_first_half(names: Sequence[str]) -> list[bool]:
    """Whether each name is in the first half; equal names are in the same half.

    Fewer than FEW names are split in the order of their hashes, so that neither half is empty.
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
    """The ten objects for which the model is least confident, with its mean error on each."""
    predict: Any = partial(predict_with, model, **card.calibration._asdict())
    rows = []
    for name in sorted(set(images.groups)):
        members = images.select([i for i, group in enumerate(images.groups) if group == name])
        confidences_seen: list[float] = []

        def predict_and_record(batch: Any, confidences_seen: list[float] = confidences_seen) -> Any:
            angles, confidences = predict(batch)
            confidences_seen += confidences.tolist()
            return angles

        result = evaluate(predict_and_record, members, views, seeds=3)
        confidence = round(float(np.mean(confidences_seen)), DECIMALS)
        rows.append(UncertainObject(name, confidence, round(result.mean, DECIMALS)))
    return tuple(sorted(rows, key=lambda row: row.confidence)[:10])


def rounded(measured: Measurement) -> Measurement:
    """The measurement rounded to four decimals, as on the card."""
    figures = rounded_values(measured.evaluation.to_dict())
    curve = tuple(RiskCoverage(**point) for point in figures.pop("risk_coverage"))
    return replace(measured, evaluation=Evaluation(**figures, risk_coverage=curve))


def rounded_values(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DECIMALS)
    if isinstance(value, dict):
        return {name: rounded_values(part) for name, part in value.items()}
    return [rounded_values(part) for part in value] if isinstance(value, list) else value
