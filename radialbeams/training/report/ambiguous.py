"""Groups or images without a single upright direction, with pictures and the reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from radialbeams.nn.architectures import Network
from radialbeams.posterior import Calibration
from radialbeams.training.data import ImageSet
from radialbeams.training.report.answers import Answers, answers_at
from radialbeams.training.report.pictures import Pixels, thumbnails
from radialbeams.training.report.symmetry import orders, pixel_order
from radialbeams.training.views import Views

UNITS = 40  # the least confident groups or images, which are examined again
IMAGES = 3  # of each group
TURNS = 8  # of each image, evenly spaced, since a few random ones would be noisy
PIXEL_TURNS = 60  # at which pixels are compared


@dataclass(frozen=True)
class AmbiguousUnit:
    """A group or an image whose posterior has no single clear direction."""

    name: str
    is_group: bool
    order: int  # k = the same every 360°/k, 0 = no up
    pixel_order: int  # the same, of the pixels alone; 1: they show no symmetry
    mean: float  # degrees: the error of its views
    pictures: tuple[Pixels, ...]


def find_ambiguous(
    model: Network,
    images: ImageSet,
    views: Views,
    calibration: Calibration,
    seen: Answers,
    names: Sequence[str],
    *,
    device: torch.device | None = None,
) -> tuple[tuple[AmbiguousUnit, ...], int]:
    """The ambiguous ones among the least confident, and the number of all groups or images."""
    if seen.chances is None:
        return (), 0
    labels, members, are_groups = _units(images, seen, names)
    sure = _means(seen.chances.sure.mean(0), members, len(labels))
    chosen = sure.argsort(stable=True)[:UNITS]
    rows, units = _representatives(seen.rows, members, chosen)
    turns = torch.arange(TURNS)[:, None] * (2 * math.pi / TURNS) + 0.1  # not quarter turns
    settings = (model, images, views, calibration)
    again = answers_at(*settings, rows, turns.expand(-1, len(rows)), device=device)
    if again.chances is None:
        return (), 0
    of_view = units.expand(TURNS, -1).flatten()
    symmetry = orders(again.chances.moments.flatten(0, 1), of_view, len(chosen))
    errors = _means(again.error.mean(0), units, len(chosen))
    return tuple(
        AmbiguousUnit(
            name=labels[int(chosen[unit])],
            is_group=are_groups,
            order=int(symmetry[unit]),
            pixel_order=_pixel_order(images, views, rows[units == unit], device),
            mean=errors[unit].item(),
            pictures=tuple(_pictures(images, rows[units == unit])),
        )
        for unit in (symmetry != 1).nonzero().flatten().tolist()
    ), len(labels)


def _units(images: ImageSet, seen: Answers, names: Sequence[str]) -> tuple[list[str], Tensor, bool]:
    """Names of the groups, or of the images where there are no groups, and (N,) members."""
    rows = seen.rows.tolist()
    groups = sorted({images.groups[row] for row in rows})
    if len(groups) < 2:
        return [names[row] for row in rows], torch.arange(len(rows)), False
    index = {name: number for number, name in enumerate(groups)}
    return groups, torch.tensor([index[images.groups[row]] for row in rows]), True


def _means(values: Tensor, members: Tensor, count: int) -> Tensor:
    total = torch.zeros(count).index_add_(0, members, values.float())
    return total / torch.bincount(members, minlength=count).clamp(min=1)


def _representatives(rows: Tensor, members: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """A few rows of each chosen unit, and which of the chosen each belongs to."""
    chosen_rows = [rows[members == unit][:IMAGES] for unit in chosen]
    units = [
        torch.full((len(group_rows),), number) for number, group_rows in enumerate(chosen_rows)
    ]
    return torch.cat(chosen_rows), torch.cat(units)


def _pixel_order(images: ImageSet, views: Views, rows: Tensor, device: torch.device | None) -> int:
    """The symmetry of the first image, which stands for its group."""
    parent = views.prepare(images.images[rows[:1]].to(device))
    turns = torch.arange(PIXEL_TURNS) * (2 * math.pi / PIXEL_TURNS)
    return pixel_order(views.turn(parent.expand(PIXEL_TURNS, -1, -1, -1), turns))


def _pictures(images: ImageSet, rows: Tensor) -> list[Pixels]:
    return thumbnails(images.images[rows], torch.zeros(len(rows)))
