"""The parts of a training run. An experiment exchanges single ones; the recipe decides the rest."""

from __future__ import annotations

from collections.abc import Callable
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
    views: Callable[[Recipe], Views] = recipe_views  # what the network is measured on
    training_views: Callable[[Recipe], Views] | None = None  # None: the same
    angles: Callable[[ImageSet], Tensor] | None = None  # (N,) radians; None: drawn in every epoch
    network: Callable[[Recipe, ImageSet], Network] = recipe_network
    loss: Callable[[Recipe, ImageSet, torch.device], Loss] = architecture_loss
    prior: Callable[[int], nn.Module] = ToeplitzPrior  # from the number of beams
    validation: Callable[[Fit], dict[str, Any]] | None = None  # a line for metrics.jsonl
    keeps_model: bool = True  # writes weights and card at the end
