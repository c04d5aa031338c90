"""What the page shows, as numbers and pictures: computed here, laid out in `page`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from radialbeams.cards import Card, Evaluation
from radialbeams.nn.architectures import Network
from radialbeams.posterior import Thresholds
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import summarise
from radialbeams.training.report.ambiguous import UNITS, Ambiguous, find_ambiguous
from radialbeams.training.report.answers import MOST_IMAGES, Answers, evenly, held_out_answers
from radialbeams.training.report.canaries import Canary, on_file
from radialbeams.training.report.intervals import Cell, cells
from radialbeams.training.report.pictures import Pixels, thumbnails
from radialbeams.training.thresholds import NEAR
from radialbeams.training.views import Views

WORST = 20
SHEET = 24  # pairs of before and after
SMALL_GROUP = 5  # held-out images; the mean of fewer says little
# Upper ends of the histogram's bars in degrees; from 150° on an answer is upside down.
EDGES = (1.0, 2.0, 5.0, 10.0, 20.0, 45.0, 90.0, 150.0, 180.0)
CURVE = 60  # points of the risk–coverage curve


class Skipped(Protocol):
    """A file that was not used, and why."""

    @property
    def path(self) -> str | Path: ...
    @property
    def reason(self) -> str: ...


@dataclass(frozen=True)
class Shown:
    """One view: how far it was turned, what the model answered, and how it looks."""

    name: str
    group: str
    truth: float  # degrees in [0, 360)
    answer: float
    error: float
    confidence: float | None
    acted: bool | None  # whether `upright` would turn it; None: the card has no thresholds
    mass: tuple[float, ...]  # of the posterior, from 0° on; empty without one
    before: Pixels
    after: Pixels


@dataclass(frozen=True)
class CrookedImage:
    """An image of the folder that is itself not upright, by models that did not train on it."""

    name: str
    angle: float  # degrees, signed: how far it is turned
    confidence: float
    before: Pixels
    after: Pixels


@dataclass(frozen=True)
class Group:
    name: str
    error: Cell
    within_10: float

    @property
    def small(self) -> bool:
        return self.error.images < SMALL_GROUP


@dataclass(frozen=True)
class Reliability:
    """Views of about one confidence: how sure the model was, and how often it was right."""

    confidence: float
    right: Cell


@dataclass(frozen=True)
class Coverage:
    """The mean error of the most confident share of the views."""

    coverage: float
    mean: float


@dataclass(frozen=True)
class Acting:
    """What the thresholds of the card do to held-out views."""

    thresholds: Thresholds
    acted: float  # share of the turned views that would be turned back
    right: float | None  # share of those that end within 5°; None: none is acted on
    spoilt: float  # share of upright pictures that would end worse
    confident: float  # share of views above the confidence threshold
    confident_mean: float | None  # their mean error


@dataclass(frozen=True)
class Point:
    """Of a curve: the mean error in degrees at a step, with its interval if there is one."""

    step: int
    mean: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Findings:
    """All that a report says. What was not measured, or does not exist, is empty or None."""

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
    groups: tuple[Group, ...]  # worst first, small ones last
    ambiguous: tuple[Ambiguous, ...]
    units: int  # groups, or images where there are no groups
    checked: int  # of those, the least sure, looked at again for symmetry
    canary: Canary | None
    skipped: tuple[Skipped, ...]
    crooked: tuple[CrookedImage, ...]


def find(
    model: Network,
    card: Card,
    held_out: ImageSet,
    views: Views,
    lines: Sequence[Mapping[str, Any]],
    *,
    run: str | Path = "",
    trust: Sequence[str] | None = None,
    skipped: Sequence[Skipped] = (),
    crooked: Sequence[CrookedImage] = (),
    canary: Canary | None = None,
    names: Sequence[str] | None = None,
    most: int = MOST_IMAGES,
    device: torch.device | None = None,
    on_batch: Callable[[int, int], None] | None = None,
) -> Findings:
    """From a trained model and its held-out images.

    The figures are those of the card if it has any for its protocol; else they are measured here,
    on the images that are shown. `trust` are the reasons not to trust the run; None says that it
    was not checked. `names` are the images' names on the page, by default their keys. `canary` is
    one that was measured for this run; by default the stored one of the same rule is shown, and the
    page says so. Of more than `most` held-out images, charts and pictures show evenly spaced ones.
    """
    measured = card.metrics.get(card.protocol.name)
    seeds = 3 if measured is None else measured.seeds
    settings = (model, held_out, views, card.calibration)
    seen = held_out_answers(*settings, seeds=seeds, most=most, device=device, on_batch=on_batch)
    names = list(held_out.keys if names is None else names)
    ambiguous, units = find_ambiguous(*settings, seen, names, device=device)
    show = _Showing(held_out, names, seen, card.abstain)
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


def training_curve(lines: Sequence[Mapping[str, Any]]) -> tuple[Point, ...]:
    """The circle loss of the training views, as the angle that has this loss."""
    found = [(line["step"], line["circle_loss"]) for line in lines if "circle_loss" in line]
    return tuple(Point(int(step), loss_in_degrees(loss)) for step, loss in found)


def loss_in_degrees(loss: float) -> float:
    return math.degrees(math.acos(min(1.0, max(-1.0, 1 - loss / 2))))


def validation_curve(lines: Sequence[Mapping[str, Any]]) -> tuple[Point, ...]:
    found = [(line["step"], line["held_out"]) for line in lines if line.get("held_out")]
    return tuple(
        Point(int(step), one["mean"], one.get("mean_low"), one.get("mean_high"))
        for step, one in found
    )


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


def by_group(seen: Answers, names: Sequence[str]) -> tuple[Group, ...]:
    """Worst first, small groups last; nothing where there are no groups, or just one."""
    known = sorted(set(names))
    if len(known) < 2:
        return ()
    place = {name: number for number, name in enumerate(known)}
    members = torch.tensor([place[name] for name in names]).expand(seen.error.shape)
    errors = cells(seen.error, members, len(known))
    right = cells((seen.error <= 10).float(), members, len(known))
    groups = [
        Group(name, error, within.mean)
        for name, error, within in zip(known, errors, right, strict=True)
    ]
    return tuple(sorted(groups, key=lambda group: (group.small, -group.error.mean)))


# --- confidence ---


def reliability(seen: Answers) -> tuple[Reliability, ...]:
    """Equally filled bins by confidence, as the calibration error has them."""
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
    # A few views at the confident end say nothing; the curve begins where the mean is steady.
    first = min(len(ranked), max(5, len(ranked) // 20))
    ends = sorted(set(torch.linspace(first, len(ranked), CURVE).round().long().tolist()))
    return tuple(Coverage(end / len(ranked), means[end - 1].item()) for end in ends)


def acting(seen: Answers, least: Thresholds) -> Acting | None:
    """By the three thresholds that are chosen from held-out views; the rest is for files."""
    if seen.chances is None:
        return None
    sure, errors = seen.chances.sure >= least.confidence, seen.error
    acted = acted_on(seen, least)
    # An upright picture has the same posterior, turned: its error moves it away from upright.
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


# --- pictures ---


class _Showing:
    """Makes `Shown` of places among the answers, counted through all seeds."""

    def __init__(
        self, images: ImageSet, names: Sequence[str], seen: Answers, least: Thresholds | None
    ) -> None:
        self.images, self.names, self.seen = images, names, seen
        self.acted = None if least is None else acted_on(seen, least).flatten()

    def views(self, places: Tensor) -> tuple[Shown, ...]:
        seen = self.seen
        rows = seen.rows[places % len(seen.rows)]
        truth, answers = seen.truth.flatten()[places], seen.answer.flatten()[places]
        parents = self.images.images[rows]
        before, after = thumbnails(parents, truth), thumbnails(parents, truth - answers)
        return tuple(
            self._one(int(place), int(row), before[k], after[k])
            for k, (place, row) in enumerate(zip(places, rows, strict=True))
        )

    def _one(self, place: int, row: int, before: Pixels, after: Pixels) -> Shown:
        seen, chances = self.seen, self.seen.chances
        return Shown(
            name=self.names[row],
            group=self.images.groups[row],
            truth=seen.truth.flatten()[place].item(),
            answer=seen.answer.flatten()[place].item(),
            error=seen.error.flatten()[place].item(),
            confidence=None if chances is None else chances.sure.flatten()[place].item(),
            acted=None if self.acted is None else bool(self.acted[place]),
            mass=() if chances is None else tuple(chances.mass.flatten(0, 1)[place].tolist()),
            before=before,
            after=after,
        )


class Crooked(Protocol):
    """An image that is not upright: its place in a set, its turn in degrees, and how sure."""

    @property
    def index(self) -> int: ...
    @property
    def angle(self) -> float: ...
    @property
    def confidence(self) -> float: ...


def crooked_images(
    found: Sequence[Crooked], images: ImageSet, names: Sequence[str] | None = None
) -> tuple[CrookedImage, ...]:
    """With a picture each, as it is and turned back; the surest come first."""
    ranked = sorted(found, key=lambda one: -one.confidence)
    names = images.keys if names is None else names
    parents = images.images[[one.index for one in ranked]]
    angles = torch.tensor([float(one.angle) for one in ranked])
    before, after = thumbnails(parents, torch.zeros_like(angles)), thumbnails(parents, -angles)
    return tuple(
        CrookedImage(names[one.index], _signed(one.angle), one.confidence, a, b)
        for one, a, b in zip(ranked, before, after, strict=True)
    )


def _signed(degrees: float) -> float:
    return (degrees + 180) % 360 - 180
