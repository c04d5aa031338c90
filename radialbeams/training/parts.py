"""The replaceable parts of a training run. Those that are not replaced follow the recipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from radialbeams.nn.architectures import Network, architecture, build
from radialbeams.nn.losses import Loss
from radialbeams.nn.prior import ToeplitzPrior
from radialbeams.stored import JsonDict
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
        exact=recipe.group == "cyclic",  # random angles are never exact quarter turns
    )


def recipe_network(recipe: Recipe, images: ImageSet) -> Network:
    return build(recipe.model)


def architecture_loss(recipe: Recipe, images: ImageSet, device: torch.device) -> Loss:
    return architecture(recipe.model).loss


def upright_images(recipe: Recipe, images: ImageSet) -> ImageSet:
    return images.upright()


@dataclass(frozen=True)
class Parts:
    """Functions that are called once, when the run starts."""

    images: Callable[[Recipe, ImageSet], ImageSet] = upright_images  # checks or replaces them
    rows: Callable[[ImageSet], Sequence[int]] | None = None  # images to train on; None: all
    views: Callable[[Recipe], Views] = recipe_views  # for validation
    training_views: Callable[[Recipe], Views] | None = None  # None: the same views
    angles: Callable[[ImageSet], Tensor] | None = None  # (N,) radians; None: drawn in every epoch
    network: Callable[[Recipe, ImageSet], Network] = recipe_network
    loss: Callable[[Recipe, ImageSet, torch.device], Loss] = architecture_loss
    prior: Callable[[int], nn.Module] = ToeplitzPrior  # from the number of beams
    validation: Callable[[Fit], JsonDict] | None = None  # a line for metrics.jsonl
    keeps_model: bool = True  # writes weights and card at the end


def check_images(images: Tensor, recipe: Recipe, views: Views) -> None:
    """Raises ValueError unless images (N, C, W, W) match the recipe and its network."""
    channels, width = images.shape[1], images.shape[-1]
    config = recipe.model
    if width != recipe.parent_size:
        raise ValueError(
            f"The recipe expects images of {recipe.parent_size} pixels; got {width}. "
            "Load them at the recipe's parent_size."
        )
    if views.size(width) != config.view_size:
        raise ValueError(
            f"The model expects views of {config.view_size} pixels, but {recipe.protocol} "
            f"views of {width} px images have {views.size(width)}. Set view_size to that."
        )
    if channels != config.channels:
        raise ValueError(
            f"The model expects {config.channels} channels; the images have {channels}. "
            "Load the images with the model's number of channels."
        )
