"""The numbers and pictures of the report; `page` lays them out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from radialbeams.cards import Card, Evaluation
from radialbeams.nn.architectures import Network
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import summarise
from radialbeams.training.report.ambiguous import UNITS, AmbiguousUnit, find_ambiguous
from radialbeams.training.report.answers import MOST_IMAGES, Answers, evenly, held_out_answers
from radialbeams.training.report.canaries import Canary, on_file
from radialbeams.training.report.certainty import (
    Acting,
    Coverage,
    Reliability,
    acting,
    reliability,
    risk_coverage,
)
from radialbeams.training.report.intervals import Cell, cells
from radialbeams.training.report.showing import CrookedImage, Showing, Shown
from radialbeams.training.run_folder import MetricsLine
from radialbeams.training.views import Views

WORST = 20
SHEET = 24  # pairs of before and after
SMALL_GROUP = 5  # held-out images; the mean of fewer says little
# Upper ends of the histogram's bars in degrees; from 150° on an answer is upside down.
EDGES = (1.0, 2.0, 5.0, 10.0, 20.0, 45.0, 90.0, 150.0, 180.0)


class SkippedFile(Protocol):
    """A file that was not used, and why."""

    @property
    def path(self) -> str | Path: ...
    @property
    def reason(self) -> str: ...


@dataclass(frozen=True)
class GroupFigures:
    name: str
    error: Cell
    within_10: float

    @property
    def small(self) -> bool:
        return self.error.images < SMALL_GROUP


@dataclass(frozen=True)
class Point:
    """Of a curve: the mean error in degrees at a step, with its interval if there is one."""

    step: int
    mean: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Findings:
    """The contents of a report. What was not measured, or does not exist, is empty or None."""

    run: str  # as the command names it
    card: Card
    evaluation: Evaluation
    seeds: int
    held_out: int  # images
    shown: int  # images that charts and pictures rest on
    trust: tuple[str, ...] | None  # reasons not to trust the run; None: it was not checked
    training: tuple[Point, ...]
    validation: tuple[Point, ...]
    histogram: tuple[float, ...]  # shares of views, one for each of EDGES
    by_angle: tuple[Cell, ...]  # equal parts of the circle, from 0° on
    reliability: tuple[Reliability, ...]
    risk_coverage: tuple[Coverage, ...]
    acting: Acting | None
    worst: tuple[Shown, ...]
    sheet: tuple[Shown, ...]
    groups: tuple[GroupFigures, ...]  # worst first, small ones last
    ambiguous: tuple[AmbiguousUnit, ...]
    units: int  # groups, or images where there are no groups
    checked: int  # of those, the least sure, looked at again for symmetry
    canary: Canary | None
    skipped: tuple[SkippedFile, ...]
    crooked: tuple[CrookedImage, ...]


def find(
    model: Network,
    card: Card,
    held_out: ImageSet,
    views: Views,
    lines: Sequence[MetricsLine],
    *,
    run: str | Path = "",
    trust: Sequence[str] | None = None,
    skipped: Sequence[SkippedFile] = (),
    crooked: Sequence[CrookedImage] = (),
    canary: Canary | None = None,
    names: Sequence[str] | None = None,
    most: int = MOST_IMAGES,
    device: torch.device | None = None,
    on_batch: Callable[[int, int], None] | None = None,
) -> Findings:
    """The findings on a trained model and its held-out images.

    The figures are those of the card if it has any for its protocol; otherwise they are measured
    here, on the images that are shown. `trust` lists reasons not to trust the run; None means that
    it was not checked. `names` are the images' names on the page (default: their keys). `canary`
    was measured for this run; by default, the page shows a stored one and says so. Charts and
    pictures show at most `most` held-out images, evenly spaced.
    """
    measured = card.metrics.get(card.protocol.name)
    seeds = 3 if measured is None else measured.seeds
    settings = (model, held_out, views, card.calibration)
    seen = held_out_answers(*settings, seeds=seeds, most=most, device=device, on_batch=on_batch)
    names = list(held_out.keys if names is None else names)
    ambiguous, units = find_ambiguous(*settings, seen, names, device=device)
    show = Showing(held_out, names, seen, card.abstain)
    return Findings(
        run=str(run) or card.name,
        card=card,
        evaluation=_evaluation(seen) if measured is None else measured.evaluation,
        seeds=seeds,
        held_out=len(held_out),
        shown=len(seen.rows),
        trust=None if trust is None else tuple(trust),
        training=training_curve(lines),
        validation=validation_curve(lines),
        histogram=histogram(seen.error),
        by_angle=by_angle(seen),
        reliability=reliability(seen),
        risk_coverage=risk_coverage(seen),
        acting=None if card.abstain is None else acting(seen, card.abstain),
        worst=show.views(worst_places(seen.error)),
        sheet=show.views(evenly(len(seen.rows), SHEET)),
        groups=by_group(seen, [held_out.groups[i] for i in seen.rows.tolist()]),
        ambiguous=ambiguous,
        units=units,
        checked=min(units, UNITS),
        canary=canary or on_file(card.protocol, card.network.view_size),
        skipped=tuple(skipped),
        crooked=tuple(crooked),
    )


def _evaluation(seen: Answers) -> Evaluation:
    sure = None if seen.chances is None else seen.chances.sure
    return summarise(torch.deg2rad(seen.error), confidences=sure)


# --- curves ---


def training_curve(lines: Sequence[MetricsLine]) -> tuple[Point, ...]:
    """The circle loss of the training views, as the angle that has this loss."""
    logged = [(line["step"], line["circle_loss"]) for line in lines if "circle_loss" in line]
    return tuple(Point(int(step), loss_in_degrees(loss)) for step, loss in logged)


def loss_in_degrees(loss: float) -> float:
    return math.degrees(math.acos(min(1.0, max(-1.0, 1 - loss / 2))))


def validation_curve(lines: Sequence[MetricsLine]) -> tuple[Point, ...]:
    logged = [(line["step"], line["held_out"]) for line in lines if line.get("held_out")]
    return tuple(
        Point(int(step), figures["mean"], figures.get("mean_low"), figures.get("mean_high"))
        for step, figures in logged
    )


def worse_than_start(curve: Sequence[Point]) -> tuple[float, float] | None:
    """The held-out errors before and after training, if training has made them larger."""
    if not curve or curve[0].step != 0 or curve[-1].mean <= curve[0].mean:
        return None
    return curve[0].mean, curve[-1].mean


# --- errors ---


def histogram(error: Tensor) -> tuple[float, ...]:
    """The share of the views in each bar; an error on an edge belongs to the bar below."""
    bars = torch.bucketize(error.flatten(), torch.tensor(EDGES)).clamp(max=len(EDGES) - 1)
    return tuple((torch.bincount(bars, minlength=len(EDGES)) / error.numel()).tolist())


def worst_places(error: Tensor) -> Tensor:
    """Of the images with the largest errors the worst view each, counted through all seeds."""
    largest, seed = error.max(0)  # (N,)
    rows = largest.argsort(descending=True, stable=True)[:WORST]
    return seed[rows] * error.shape[1] + rows


def by_angle(seen: Answers) -> tuple[Cell, ...]:
    """The mean error in equal parts of the circle, each wide enough to hold some views."""
    parts = max(4, min(24, seen.truth.numel() // 20))
    members = (seen.truth * (parts / 360)).long().clamp(0, parts - 1)
    return tuple(cells(seen.error, members, parts))


def by_group(seen: Answers, names: Sequence[str]) -> tuple[GroupFigures, ...]:
    """Worst first, small groups last; nothing where there are no groups, or just one."""
    known = sorted(set(names))
    if len(known) < 2:
        return ()
    index = {name: number for number, name in enumerate(known)}
    members = torch.tensor([index[name] for name in names]).expand(seen.error.shape)
    errors = cells(seen.error, members, len(known))
    right = cells((seen.error <= 10).float(), members, len(known))
    groups = [
        GroupFigures(name, error, within.mean)
        for name, error, within in zip(known, errors, right, strict=True)
    ]
    return tuple(sorted(groups, key=lambda group: (group.small, -group.error.mean)))
