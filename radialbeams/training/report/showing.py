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
    """Makes `Shown` from indices of answers, counted through all seeds."""

    def __init__(
        self, images: ImageSet, names: Sequence[str], seen: Answers, least: Thresholds | None
    ) -> None:
        self.images, self.names, self.seen = images, names, seen
        self.acted = None if least is None else acted_on(seen, least).flatten()

    def views(self, indices: Tensor) -> tuple[Shown, ...]:
        seen = self.seen
        rows = seen.rows[indices % len(seen.rows)]
        truth, answers = seen.truth.flatten()[indices], seen.answer.flatten()[indices]
        parents = self.images.images[rows]
        before, after = thumbnails(parents, truth), thumbnails(parents, truth - answers)
        return tuple(
            self._shown(int(index), int(row), before[k], after[k])
            for k, (index, row) in enumerate(zip(indices, rows, strict=True))
        )

    def _shown(self, index: int, row: int, before: Pixels, after: Pixels) -> Shown:
        seen, chances = self.seen, self.seen.chances
        return Shown(
            name=self.names[row],
            group=self.images.groups[row],
            truth=seen.truth.flatten()[index].item(),
            answer=seen.answer.flatten()[index].item(),
            error=seen.error.flatten()[index].item(),
            confidence=None if chances is None else chances.sure.flatten()[index].item(),
            acted=None if self.acted is None else bool(self.acted[index]),
            mass=() if chances is None else tuple(chances.mass.flatten(0, 1)[index].tolist()),
            before=before,
            after=after,
        )


class CrookedLike(Protocol):
    """An image that is not upright: its place in a set, its turn in degrees, and how sure."""

    @property
    def index(self) -> int: ...
    @property
    def angle(self) -> float: ...
    @property
    def confidence(self) -> float: ...


def crooked_images(
    crooked: Sequence[CrookedLike], images: ImageSet, names: Sequence[str] | None = None
) -> tuple[CrookedImage, ...]:
    """With a picture each, as it is and turned back; the surest come first."""
    ranked = sorted(crooked, key=lambda image: -image.confidence)
    names = images.keys if names is None else names
    parents = images.images[[image.index for image in ranked]]
    angles = torch.tensor([float(image.angle) for image in ranked])
    before, after = thumbnails(parents, torch.zeros_like(angles)), thumbnails(parents, -angles)
    return tuple(
        CrookedImage(names[image.index], _signed(image.angle), image.confidence, a, b)
        for image, a, b in zip(ranked, before, after, strict=True)
    )


def _signed(degrees: float) -> float:
    return (degrees + 180) % 360 - 180
