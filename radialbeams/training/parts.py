"""The parts of a training run. An experiment exchanges single ones; the recipe decides the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from radialbeams.nn.architectures import Network, architecture, build
from radialbeams.nn.losses import Loss
from radialbeams.nn.prior import ToeplitzPrior
from radialbeams.training.data import ImageSet
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import Views, make_views

if TYPE_CHECKING:
    from radialbeams.training.fit import Fit


def recipe_views(recipe: Recipe) -> Views:
    return make_views(
        recipe.protocol,
        padding=recipe.padding,
        view_size=recipe.model.view_size,
        sigma=recipe.sigma,
        reach=recipe.reach,
        exact=recipe.group == "cyclic",  # of all angles none is a quarter turn
    )


def recipe_network(recipe: Recipe, images: ImageSet) -> Network:
    return build(recipe.model)


def architecture_loss(recipe: Recipe, images: ImageSet, device: torch.device) -> Loss:
    return architecture(recipe.model).loss


def upright_images(recipe: Recipe, images: ImageSet) -> ImageSet:
    return images.upright()


@dataclass(frozen=True)
class Parts:
    """Each is called once, when the run begins."""

    images: Callable[[Recipe, ImageSet], ImageSet] = upright_images  # checks or exchanges them
    rows: Callable[[ImageSet], Sequence[int]] | None = None  # that are trained on; None: all
    views: Callable[[Recipe], Views] = recipe_views  # what the network is measured on
    training_views: Callable[[Recipe], Views] | None = None  # None: the same
    angles: Callable[[ImageSet], Tensor] | None = None  # (N,) radians; None: drawn in every epoch
    network: Callable[[Recipe, ImageSet], Network] = recipe_network
    loss: Callable[[Recipe, ImageSet, torch.device], Loss] = architecture_loss
    prior: Callable[[int], nn.Module] = ToeplitzPrior  # from the number of beams
    validation: Callable[[Fit], dict[str, Any]] | None = None  # a line for metrics.jsonl
    keeps_model: bool = True  # writes weights and card at the end


def check_images(images: Tensor, recipe: Recipe, views: Views) -> None:
    """Whether images (N, C, W, W) are of the kind that the recipe and its network expect."""
    channels, width = images.shape[1], images.shape[-1]
    config = recipe.model
    if width != recipe.parent_size:
        raise ValueError(
            f"The recipe has images of {recipe.parent_size} pixels; these have {width}. "
            "Load them at the recipe's parent_size."
        )
    if views.size(width) != config.view_size:
        raise ValueError(
            f"The model sees views of {config.view_size} pixels, but {recipe.protocol} "
            f"views of {width} px images have {views.size(width)}. Set view_size to that."
        )
    if channels != config.channels:
        raise ValueError(
            f"The model has {config.channels} channels, the images have {channels}. "
            "Load the images with as many channels as the model has."
        )
