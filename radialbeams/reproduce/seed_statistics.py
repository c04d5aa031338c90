"""Statistics over seeds: mean, spread, and whether two kinds of runs differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from radialbeams.reproduce.training_record import TrainingRecord
from radialbeams.stored import JsonDict, JsonFields

LEVEL = 0.05  # of the test that two kinds of runs differ
POWER = 0.8  # with which a difference that is called detectable is found
REPETITIONS = 4000  # that are simulated
STUCK = 45.0  # degrees of mean error, half of chance: from here on a run has not trained


def spread(values: Sequence[float]) -> JsonDict:
    """Mean and standard deviation over seeds (0 for a single one), and the values themselves.

    If every run has diverged, mean and standard deviation are NaN.
    """
    if not values:
        return {"mean": math.nan, "std": math.nan, "values": []}
    found = np.asarray(values, dtype=float)
    deviation = found.std(ddof=1) if len(found) > 1 else 0.0
    return {"mean": float(found.mean()), "std": float(deviation), "values": found.tolist()}


def compare(first: JsonFields, second: JsonFields) -> int:
    """−1 if the first is lower, 1 if higher, 0 if not significant (5%, Welch's test).

    With one seed there is no spread, so nothing is significant. There is no correction for the
    number of comparisons: of twenty equal pairs, one will seem to differ.
    """
    counts = [len(one["values"]) for one in (first, second)]
    if min(counts) < 2:
        return 0
    gap = first["mean"] - second["mean"]
    if first["std"] == second["std"] == 0:  # nothing was left to chance
        return int(np.sign(gap))
    from scipy.stats import ttest_ind_from_stats  # type: ignore[import-untyped, unused-ignore]

    samples = [(one["mean"], one["std"], n) for one, n in zip((first, second), counts, strict=True)]
    likely = ttest_ind_from_stats(*samples[0], *samples[1], equal_var=False).pvalue >= LEVEL
    return 0 if likely else int(np.sign(gap))


def detectable(first: JsonFields, second: JsonFields) -> float:
    """The smallest difference that `compare` finds in four of five repetitions, at this spread.

    Repetitions are simulated: with few seeds, the degrees of freedom of Welch's test are themselves
    uncertain, and formulas are too optimistic. Infinite with one seed, which has no spread.
    """
    pair = (first, second)
    counts = [len(one["values"]) for one in pair]
    if min(counts) < 2:
        return math.inf
    if first["std"] == second["std"] == 0:
        return 0.0
    from scipy.stats import t  # type: ignore[import-untyped, unused-ignore]

    generator = np.random.default_rng(0)
    low, high = (
        one["std"] * generator.standard_normal((REPETITIONS, n))
        for one, n in zip(pair, counts, strict=True)
    )

    # Welch's t and its degrees of freedom; only the difference of the means moves with the shift.
    errors = [sample.var(axis=1, ddof=1) / sample.shape[1] for sample in (low, high)]
    squares = [
        error**2 / (sample.shape[1] - 1) for error, sample in zip(errors, (low, high), strict=True)
    ]
    total = errors[0] + errors[1]
    critical = t.ppf(1 - LEVEL / 2, total**2 / (squares[0] + squares[1]))
    needed = np.sort(critical * np.sqrt(total) - (high.mean(axis=1) - low.mean(axis=1)))
    return max(0.0, float(needed[math.ceil(POWER * REPETITIONS) - 1]))


def unclear(first: JsonFields, second: JsonFields, unit: str = "°") -> str:
    """What the absence of a clear difference is worth, in words."""
    least = detectable(first, second)
    if math.isinf(least):
        return "one seed, so no difference can be judged"
    size = f"{least:.0f}" if least >= 10 else f"{least:.2g}"
    return f"no clear difference; one below {size}{unit} would go unnoticed"


def ranged(found: JsonFields, unit: str = "°") -> str:
    """Median and range over seeds: one run that went astray does not drag them."""
    values = found["values"]
    if not values:
        return "diverged"
    middle = f"{float(np.median(values)):.1f}{unit}"
    if len(values) == 1:
        return f"{middle} (1 seed)"
    return f"{middle} ({min(values):.1f} to {max(values):.1f}{unit}, {len(values)} seeds)"


def over_seeds(degrees: Sequence[float]) -> str:
    """Mean and standard deviation of the runs that trained, and how many there are."""
    learnt = [value for value in degrees if value < STUCK]
    if not learnt:
        return f"{min(degrees):.0f}° ({_seeds(len(degrees))}, none trained)"
    found, lost = spread(learnt), len(degrees) - len(learnt)
    text = f"{found['mean']:.2f}°"
    if len(learnt) > 1:
        text += f" ± {found['std']:.2f}°"
    if lost:
        return f"{text} ({_seeds(len(learnt))}; {lost} more did not train)"
    return f"{text} ({_seeds(len(learnt))})" if len(learnt) > 1 else text


def _seeds(count: int) -> str:
    return f"{count} seed{'s' if count > 1 else ''}"


def finished(runs: Sequence[TrainingRecord]) -> Sequence[TrainingRecord]:
    """The runs that did not diverge, or all if all did; a diverged run has shorter curves."""
    return [run for run in runs if run.finished] or runs


def mean_curve(curves: Sequence[Sequence[float]]) -> dict[str, list[float]]:
    """Pointwise mean, median, least and greatest over seeds, to the end of the shortest curve."""
    length = min(len(curve) for curve in curves)
    found = np.asarray([curve[:length] for curve in curves], dtype=float)
    ways = {"mean": found.mean(axis=0), "low": found.min(axis=0), "high": found.max(axis=0)}
    ways["median"] = np.median(found, axis=0)
    return {way: [float(f"{value:.4g}") for value in values] for way, values in ways.items()}
