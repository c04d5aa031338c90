"""The figures of a quarter network on held-out pages, and the card that stores them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from radialbeams.stored import JsonDict
from radialbeams.training.data.documents.pool import (
    DOCUMENT,
    HAS_UP,
    LAYOUTS,
    PHOTO,
    POOL_KINDS,
    POOL_SCRIPTS,
)


@dataclass(frozen=True)
class QuarterCard:
    """The card of a finished run, as `quarter_export` reads it from JSON."""

    name: str
    config: JsonDict  # the fields of QuarterConfig
    parameters: int
    data: JsonDict
    training: JsonDict  # the recipe, and the outcome of the run
    temperature: float
    held_out: JsonDict  # shares by kind, layout and script
    sha256: dict[str, str]


def fit_temperature(quarters: Tensor, marks: Tensor) -> float:
    """The divisor of the logits with the least cross-entropy on documents with a clear up."""
    flags = marks[:, 0].int()
    chosen = quarters[(flags & HAS_UP > 0) & (flags & DOCUMENT > 0)].float()
    if not len(chosen):
        return 1.0
    candidates = torch.logspace(-1, 1, 81)
    losses = [-(chosen / t).log_softmax(1)[:, 0].mean().item() for t in candidates]
    return float(candidates[int(np.argmin(losses))])


def held_out_report(quarters: Tensor, document: Tensor, marks: Tensor) -> JsonDict:
    """Correct quarters by kind, layout and script; calibration; and figures of "document"."""
    largest, answers = quarters.softmax(1).max(1)
    chances, right = largest.cpu().numpy(), (answers == 0).cpu().numpy()
    table = marks.cpu().numpy()
    flags = table[:, 0]
    up = (flags & HAS_UP > 0) & (flags & DOCUMENT > 0)
    plain = (flags & HAS_UP == 0) & (flags & PHOTO == 0)
    report: JsonDict = {
        "pages": int(up.sum()),
        "right": _mean(right[up]),
        "calibration_error": calibration_error(chances[up], right[up]),
        "confidence_without_up": _mean(chances[plain]),
        "document_right": _mean((document.cpu().numpy() > 0) == (flags & DOCUMENT > 0)),
    }
    for column, names in ((1, POOL_KINDS), (2, LAYOUTS), (3, POOL_SCRIPTS)):
        for index in np.unique(table[:, column]):
            chosen = (table[:, column] == index) & (flags & HAS_UP > 0)
            if chosen.any():
                report[names[index]] = [_mean(right[chosen]), int(chosen.sum())]
    return report


def _mean(values: Any) -> float:
    return round(float(np.mean(values)), 4) if len(values) else float("nan")


def calibration_error(chances: Any, right: Any, bins: int = 10) -> float:
    """Expected calibration error: |confidence − accuracy| over equal bins, weighted by count."""
    if not len(chances):
        return float("nan")
    places = np.minimum((np.asarray(chances) * bins).astype(int), bins - 1)
    total = 0.0
    for place in np.unique(places):
        chosen = places == place
        total += chosen.mean() * abs(np.mean(chances[chosen]) - np.mean(right[chosen]))
    return round(float(total), 4)
