"""Figures of several seeds: their mean, their spread, and whether two kinds of runs differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Mean and standard deviation over seeds (0 for a single one), and the values themselves."""
    found = np.asarray(values, dtype=float)
    deviation = found.std(ddof=1) if len(found) > 1 else 0.0
    return {"mean": float(found.mean()), "std": float(deviation), "values": found.tolist()}


def difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[float, float]:
    """The mean of the first less that of the second, and its standard error."""
    error = math.sqrt(sum(one["std"] ** 2 / max(len(one["values"]), 1) for one in (first, second)))
    return first["mean"] - second["mean"], error


def compare(first: Mapping[str, Any], second: Mapping[str, Any]) -> int:
    """−1 if the first is lower by more than two standard errors, 1 if higher, 0 if neither.

    One seed tells nothing of the spread, so there nothing differs.
    """
    if min(len(first["values"]), len(second["values"])) < 2:
        return 0
    gap, error = difference(first, second)
    return 0 if abs(gap) <= 2 * error else (1 if gap > 0 else -1)


def mean_curve(curves: Sequence[Sequence[float]]) -> dict[str, list[float]]:
    """Point by point over seeds; curves of unequal length are cut to the shortest."""
    length = min(len(curve) for curve in curves)
    found = np.asarray([curve[:length] for curve in curves], dtype=float)
    deviation = found.std(axis=0, ddof=1) if len(found) > 1 else np.zeros(length)
    return {
        "mean": [float(f"{value:.4g}") for value in found.mean(axis=0)],
        "std": [float(f"{value:.3g}") for value in deviation],
    }
