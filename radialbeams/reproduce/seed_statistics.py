"""Statistics over seeds: mean, spread, and whether two kinds of runs differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Mean and standard deviation over seeds (0 for a single one), and the values themselves.

    If every run has diverged, mean and standard deviation are NaN.
    """
    if not values:
        return {"mean": math.nan, "std": math.nan, "values": []}
    found = np.asarray(values, dtype=float)
    deviation = found.std(ddof=1) if len(found) > 1 else 0.0
    return {"mean": float(found.mean()), "std": float(deviation), "values": found.tolist()}


def difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[float, float]:
    """The mean of the first minus that of the second, and its standard error."""
    error = math.sqrt(sum(one["std"] ** 2 / max(len(one["values"]), 1) for one in (first, second)))
    return first["mean"] - second["mean"], error


def compare(first: Mapping[str, Any], second: Mapping[str, Any]) -> int:
    """−1 if the first is lower, 1 if higher, 0 if not significant (5%, Welch's test).

    With one seed there is no spread, so nothing is significant. There is no correction for the
    number of comparisons: of twenty equal pairs, one will seem to differ.
    """
    if min(len(first["values"]), len(second["values"])) < 2:
        return 0
    gap, error = difference(first, second)
    return 0 if abs(gap) <= quantile(_freedom(first, second)) * error else (1 if gap > 0 else -1)


# Two-sided 95% quantiles of Student's t, by degrees of freedom.
STUDENT = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306}
STUDENT |= {10: 2.228, 12: 2.179, 15: 2.131, 20: 2.086, 30: 2.042, 60: 2.0, 120: 1.98}


def quantile(freedom: float) -> float:
    """Interpolated linearly in 1/freedom, which is accurate to 1%."""
    known = np.array([*STUDENT, math.inf])
    return float(np.interp(-1 / freedom, -1 / known, [*STUDENT.values(), 1.96]))


def _freedom(first: Mapping[str, Any], second: Mapping[str, Any]) -> float:
    """Welch's degrees of freedom of the difference of two means."""
    parts = [(one["std"] ** 2 / len(one["values"]), len(one["values"])) for one in (first, second)]
    below = sum(part**2 / (count - 1) for part, count in parts)
    return sum(part for part, _ in parts) ** 2 / below if below else math.inf


def finished(runs: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """The runs that did not diverge, or all if all did; a diverged run has shorter curves."""
    return [run for run in runs if "measured" in run] or runs


def mean_curve(curves: Sequence[Sequence[float]]) -> dict[str, list[float]]:
    """Pointwise mean, minimum and maximum over seeds, up to the end of the shortest curve."""
    length = min(len(curve) for curve in curves)
    found = np.asarray([curve[:length] for curve in curves], dtype=float)
    ways = {"mean": found.mean(axis=0), "low": found.min(axis=0), "high": found.max(axis=0)}
    return {way: [float(f"{value:.4g}") for value in values] for way, values in ways.items()}
