"""Training on images that come already turned, as SI-SCORE's do: nothing is rendered or drawn."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radialbeams.cards import Evaluation
from radialbeams.nn.angles import angular_error
from radialbeams.nn.architectures import Network
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import predict_with, summarise
from radialbeams.training.parts import Parts
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import PaperViews, as_floats


@dataclass(frozen=True)
class TurnedViews(PaperViews):
    """The images themselves: no padding, since the turn is in them and their border never moved."""

    def size(self, parent_size: int) -> int:
        return parent_size

    def turn(
        self,
        prepared: Tensor,
        angles: Tensor,
        zoom: Tensor | None = None,
        shift: Tensor | None = None,
    ) -> Tensor:
        return prepared


def _with_angles(recipe: Recipe, images: ImageSet) -> ImageSet:
    turns_of(images)
    return images


def turns_of(images: ImageSet) -> Tensor:
    """(N,) radians."""
    if images.angles_degrees is None:
        raise ValueError(
            f"Expected images that come already turned, with their angles; {images.name} has none. "
            "Upright images are turned while training: leave `PREROTATED` out."
        )
    return torch.deg2rad(torch.tensor(images.angles_degrees))


# For a set that knows its angles: every image has one and keeps it.
PREROTATED = Parts(images=_with_angles, views=lambda recipe: TurnedViews(), angles=turns_of)


def found_turns(model: Network, images: ImageSet, device: torch.device, batch: int = 64) -> Tensor:
    """(N,) radians: what the model says of each."""
    answers = []
    for start in range(0, len(images), batch):
        views = as_floats(images.images[start : start + batch].to(device))
        found = predict_with(model, views)
        answers.append((found[0] if isinstance(found, tuple) else found).cpu().float())
    return torch.cat(answers)


def turned_errors(model: Network, images: ImageSet, device: torch.device) -> Evaluation:
    """As `evaluate`, of a set whose angles are given; by group as well."""
    errors = angular_error(found_turns(model, images, device), turns_of(images))
    return summarise(errors[None], images.groups)
