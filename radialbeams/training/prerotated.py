"""Training on pre-rotated images such as SI-SCORE's: no views are rendered, no angles drawn."""

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
    """The images themselves, without padding: they are rotated already."""

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
            f"Expected pre-rotated images with known angles; {images.name} has none. "
            "For upright images, which training rotates, leave `PREROTATED` out."
        )
    return torch.deg2rad(torch.tensor(images.angles_degrees))


# For a data set with known angles: every image keeps its own.
PREROTATED = Parts(images=_with_angles, views=lambda recipe: TurnedViews(), angles=turns_of)


def estimated_turns(
    model: Network, images: ImageSet, device: torch.device, batch: int = 64
) -> Tensor:
    """(N,) radians: the model's estimate for each image."""
    estimates = []
    for start in range(0, len(images), batch):
        views = as_floats(images.images[start : start + batch].to(device))
        predicted = predict_with(model, views)
        angles = predicted[0] if isinstance(predicted, tuple) else predicted
        estimates.append(angles.cpu().float())
    return torch.cat(estimates)


def turned_errors(model: Network, images: ImageSet, device: torch.device) -> Evaluation:
    """As `evaluate`, for a data set with known angles; by group as well."""
    errors = angular_error(estimated_turns(model, images, device), turns_of(images))
    return summarise(errors[None], images.groups)
