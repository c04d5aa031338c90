"""Views and images with their pictures, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from radialbeams.posterior import Thresholds
from radialbeams.training.data import ImageSet
from radialbeams.training.report.answers import Answers
from radialbeams.training.report.certainty import acted_on
from radialbeams.training.report.pictures import Pixels, thumbnails


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


class Showing:
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
