"""Confidence against accuracy, and the effect of the thresholds."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radialbeams.posterior import Thresholds
from radialbeams.training.report.answers import Answers
from radialbeams.training.report.intervals import Cell, cells
from radialbeams.training.thresholds import NEAR

CURVE = 60  # points of the risk–coverage curve


@dataclass(frozen=True)
class Reliability:
    """Views of similar confidence: their mean confidence, and how often the answer was right."""

    confidence: float
    right: Cell


@dataclass(frozen=True)
class Coverage:
    """The mean error of the most confident share of the views."""

    coverage: float
    mean: float


@dataclass(frozen=True)
class Acting:
    """The effect of the card's thresholds on held-out views."""

    thresholds: Thresholds
    acted: float  # share of the turned views that would be turned back
    right: float | None  # share of those that end within 5°; None: none is acted on
    spoilt: float  # share of upright pictures that would end worse
    confident: float  # share of views above the confidence threshold
    confident_mean: float | None  # their mean error


def reliability(seen: Answers) -> tuple[Reliability, ...]:
    """Bins of equal counts by confidence, as in the calibration error."""
    if seen.chances is None:
        return ()
    sure = seen.chances.sure
    bins = max(2, min(10, sure.numel() // 15))
    ranks = sure.flatten().argsort(stable=True).argsort().reshape(sure.shape)
    members = ranks * bins // sure.numel()
    right = cells((seen.error <= 10).float(), members, bins)
    means = cells(sure, members, bins)
    return tuple(Reliability(a.mean, b) for a, b in zip(means, right, strict=True) if b.views)


def risk_coverage(seen: Answers) -> tuple[Coverage, ...]:
    if seen.chances is None:
        return ()
    order = seen.chances.sure.flatten().argsort(descending=True, stable=True)
    ranked = seen.error.flatten()[order].double()
    means = ranked.cumsum(0) / torch.arange(1, len(ranked) + 1)
    # The mean of a few views is noisy, so the curve starts at a twentieth of the views.
    first = min(len(ranked), max(5, len(ranked) // 20))
    ends = sorted(set(torch.linspace(first, len(ranked), CURVE).round().long().tolist()))
    return tuple(Coverage(end / len(ranked), means[end - 1].item()) for end in ends)


def acting(seen: Answers, least: Thresholds) -> Acting | None:
    """The effect of the three thresholds that are chosen on held-out views."""
    if seen.chances is None:
        return None
    sure, errors = seen.chances.sure >= least.confidence, seen.error
    acted = acted_on(seen, least)
    # An upright picture has the same posterior, rotated, so its error turns it away from upright.
    spoilt = sure & (seen.chances.truth <= least.upright) & (errors >= least.angle)
    return Acting(
        least,
        acted=_share(acted),
        right=_share(errors[acted] <= NEAR) if acted.any() else None,
        spoilt=_share(spoilt),
        confident=_share(sure),
        confident_mean=errors[sure].mean().item() if sure.any() else None,
    )


def acted_on(seen: Answers, least: Thresholds) -> Tensor:
    """(seeds, N) booleans: which views `upright` would turn back."""
    if seen.chances is None:
        return torch.ones_like(seen.error, dtype=torch.bool)
    away = 180 - (seen.answer - 180).abs()  # of the answer from upright
    chances = seen.chances
    sure = chances.sure >= least.confidence
    return sure & (chances.upright <= least.upright) & (away >= least.angle)


def _share(which: Tensor) -> float:
    return which.float().mean().item()
