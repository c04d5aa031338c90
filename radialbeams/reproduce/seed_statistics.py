"""Statistics over seeds: mean, spread, and whether two kinds of runs differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from radialbeams.reproduce.training_record import TrainingRecord
from radialbeams.stored import JsonDict, JsonFields

LEVEL = 0.05  # of the test that two kinds of runs differ
POWER = 0.8  # of the test, for a difference that counts as detectable
REPETITIONS = 4000  # of the simulation
STUCK = 45.0  # degrees of mean error, half of chance: a run that reaches it has not trained


def spread(values: Sequence[float]) -> JsonDict:
    """Mean and standard deviation over seeds (0 for a single one), and the values themselves.

    If every run has diverged, mean and standard deviation are NaN.
    """
    if not values:
        return {"mean": math.nan, "std": math.nan, "values": []}
    array = np.asarray(values, dtype=float)
    deviation = array.std(ddof=1) if len(array) > 1 else 0.0
    return {"mean": float(array.mean()), "std": float(deviation), "values": array.tolist()}


def compare(first: JsonFields, second: JsonFields) -> int:
    """−1 if the first is lower, 1 if higher, 0 if not significant (5%, Welch's test).

    With one seed there is no spread, so nothing is significant. There is no correction for the
    number of comparisons: of twenty equal pairs, one will seem to differ.
    """
    counts = [len(kind["values"]) for kind in (first, second)]
    if min(counts) < 2:
        return 0
    gap = first["mean"] - second["mean"]
    if first["std"] == second["std"] == 0:  # deterministic
        return int(np.sign(gap))
    from scipy.stats import ttest_ind_from_stats  # type: ignore[import-untyped, unused-ignore]

    samples = [
        (kind["mean"], kind["std"], n) for kind, n in zip((first, second), counts, strict=True)
    ]
    likely = ttest_ind_from_stats(*samples[0], *samples[1], equal_var=False).pvalue >= LEVEL
    return 0 if likely else int(np.sign(gap))


def detectable(first: JsonFields, second: JsonFields) -> float:
    """The smallest difference that `compare` finds in four of five repetitions, at this spread.

    Repetitions are simulated: with few seeds, the degrees of freedom of Welch's test are themselves
    uncertain, and formulas are too optimistic. With one seed there is no spread, and the result is
    infinite.
    """
    pair = (first, second)
    counts = [len(kind["values"]) for kind in pair]
    if min(counts) < 2:
        return math.inf
    if first["std"] == second["std"] == 0:
        return 0.0
    from scipy.stats import t  # type: ignore[import-untyped, unused-ignore]

    generator = np.random.default_rng(0)
    low, high = (
        kind["std"] * generator.standard_normal((REPETITIONS, n))
        for kind, n in zip(pair, counts, strict=True)
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
    """That no difference is clear, and how small a one would go unnoticed, in words."""
    least = detectable(first, second)
    if math.isinf(least):
        return "one seed, so no difference can be judged"
    size = f"{least:.0f}" if least >= 10 else f"{least:.2g}"
    return f"no clear difference; one below {size}{unit} would go unnoticed"


def median_and_range(errors: JsonFields, unit: str = "°") -> str:
    """Median and range over seeds, in words; the median is robust against a single outlier."""
    values = errors["values"]
    if not values:
        return "diverged"
    middle = f"{float(np.median(values)):.1f}{unit}"
    if len(values) == 1:
        return f"{middle} (1 seed)"
    return f"{middle} ({min(values):.1f} to {max(values):.1f}{unit}, {len(values)} seeds)"


def over_seeds(degrees: Sequence[float]) -> str:
    """Mean and standard deviation of the runs that trained, and their number, in words."""
    trained = [value for value in degrees if value < STUCK]
    if not trained:
        return f"{min(degrees):.0f}° ({_seeds(len(degrees))}, none trained)"
    statistics, failed = spread(trained), len(degrees) - len(trained)
    text = f"{statistics['mean']:.2f}°"
    if len(trained) > 1:
        text += f" ± {statistics['std']:.2f}°"
    if failed:
        return f"{text} ({_seeds(len(trained))}; {failed} more did not train)"
    return f"{text} ({_seeds(len(trained))})" if len(trained) > 1 else text


def _seeds(count: int) -> str:
    return f"{count} seed{'s' if count > 1 else ''}"


def finished(runs: Sequence[TrainingRecord]) -> Sequence[TrainingRecord]:
    """The runs that did not diverge, or all if all did; a diverged run has shorter curves."""
    return [run for run in runs if run.finished] or runs


def mean_curve(curves: Sequence[Sequence[float]]) -> dict[str, list[float]]:
    """Pointwise mean, median, minimum and maximum over seeds, up to the shortest curve's end."""
    length = min(len(curve) for curve in curves)
    array = np.asarray([curve[:length] for curve in curves], dtype=float)
    statistics = {"mean": array.mean(axis=0), "low": array.min(axis=0), "high": array.max(axis=0)}
    statistics["median"] = np.median(array, axis=0)
    return {
        name: [float(f"{value:.4g}") for value in values] for name, values in statistics.items()
    }
