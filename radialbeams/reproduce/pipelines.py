"""The pipelines that `samples` compares: localisation networks and classifiers of equal size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import torch.nn.functional as F
from torch import Tensor, nn

from radialbeams.front.pose import Pose
from radialbeams.front.view_geometry import ViewGeometry
from radialbeams.nn.angles import circle_loss, from_unit
from radialbeams.nn.architectures import Config
from radialbeams.nn.bic import BIC, BICConfig
from radialbeams.nn.posterior import answer, posterior, ring_loss
from radialbeams.nn.ring_network import RingBIC, RingConfig
from radialbeams.nn.rotation import largest_view
from radialbeams.reproduce import paper
from radialbeams.reproduce.group_equivariant import GroupClassifier, group_widths
from radialbeams.reproduce.joint import (
    SmallClassifier,
    classifier_parameters,
    parameters,
    widened,
)
from radialbeams.training.recipe import Recipe

BEAMS, LENGTH = 32, 12
WIDTHS = (16, 32, 64)  # of the classifier behind a localisation network

Localiser = Literal["none", "cnn", "bic", "ring"]


@dataclass(frozen=True)
class ComparedPipeline:
    """A localisation network, the losses that train it, and the classifier's training images."""

    title: str
    words: str  # in a sentence
    localiser: Localiser = "none"
    angle: bool = True  # the localisation network learns from the angle loss
    downstream: bool = True  # … and from the class loss
    upright: bool = False  # the classifier is trained on upright images
    group: bool = False  # a classifier equivariant to C8


PIPELINES = {
    "augmented": ComparedPipeline("rotation augmentation", "a CNN with augmentation"),
    "c8": ComparedPipeline("C8-equivariant CNN, augmentation", "a C8-equivariant CNN", group=True),
    "apart": ComparedPipeline(
        "ring trained apart", "a ring that is trained apart", "ring", downstream=False, upright=True
    ),
    "stn": ComparedPipeline(
        "spatial transformer, CNN", "a spatial transformer with a CNN", "cnn", angle=False
    ),
    "cnn": ComparedPipeline(
        "spatial transformer, CNN, angle loss too",
        "a spatial transformer with a CNN and the angle loss",
        "cnn",
    ),
    "bic": ComparedPipeline(
        "spatial transformer, paper's network",
        "a spatial transformer with the paper's network",
        "bic",
    ),
    "ring": ComparedPipeline(
        "spatial transformer, ring", "a spatial transformer with the ring", "ring"
    ),
}
# The pipelines that estimate an angle and rotate the image back.
CANONICALISERS = tuple(name for name, pipeline in PIPELINES.items() if pipeline.localiser != "none")


# --- the networks ---


def localiser_config(kind: Localiser, size: int) -> Config:
    """The configuration of a network of about 40,000 parameters on a small leak-free view."""
    view = largest_view(size)
    if kind == "bic":
        return BICConfig(
            view_size=view,
            channels=1,
            num_beams=BEAMS,
            beam_length=LENGTH,
            epsilon=0,
            sampler="polar",
            latent=32,
            hub=paper.HUB,
        )
    return RingConfig(
        view_size=view,
        channels=1,
        num_beams=BEAMS,
        beam_length=LENGTH,
        epsilon=0,
        sampler="polar",
        stem=16,
        stem_stride=2,
        stages=(16, 24),
        width=48,
        dilations=(1, 2, 4),
    )


class UnitCNN(SmallClassifier):
    """Views (N, C, S, S) → unit vectors (N, 2): an ordinary CNN that regresses the angle."""

    def forward(self, images: Tensor) -> Tensor:
        return F.normalize(super().forward(images), dim=-1)


class Transformer(nn.Module):
    """Images (N, C, S, S) → class logits and angles, after rotation by the localiser's estimate."""

    def __init__(self, classifier: nn.Module, localiser: nn.Module | None, view: nn.Module) -> None:
        super().__init__()
        self.classifier, self.localiser, self.view = classifier, localiser, view

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        if self.localiser is None:
            return self.classifier(images), None
        angles, _ = self.angles(images)
        return self.classifier(self.uprighted(images, angles)), angles

    def angles(self, images: Tensor, true: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The estimates (N,), and the mean angle loss against the true ones."""
        if self.localiser is None:
            raise TypeError("This pipeline estimates no angle.")
        outputs = self.localiser(self.view(images))
        if isinstance(outputs, tuple):
            estimates = answer(posterior(*outputs))
            loss = ring_loss(estimates.detach() if true is None else true, *outputs)[0]
        else:
            estimates = from_unit(outputs)
            loss = circle_loss(estimates.detach() if true is None else true, outputs)
        return estimates, loss.mean()

    @staticmethod
    def uprighted(images: Tensor, angles: Tensor) -> Tensor:
        return Pose.from_angles(angles, (images.shape[-2], images.shape[-1])).apply_images(images)


def transformer(pipeline: ComparedPipeline, recipe: Recipe, classes: int) -> Transformer:
    """The network of a pipeline; all have as many parameters as the ring's, to within 3%."""
    channels, view = recipe.model.channels, recipe.model.view_size
    ring = RingBIC(cast(RingConfig, localiser_config("ring", recipe.parent_size)))
    geometry = ViewGeometry(view, channels, recipe.parent_size)
    localiser_parameters = parameters(ring)
    total = classifier_parameters(channels, classes, WIDTHS) + localiser_parameters
    if pipeline.group:
        classifier = GroupClassifier(channels, classes, group_widths(channels, classes, total))
        return Transformer(classifier, None, geometry)
    if pipeline.localiser == "none":
        return Transformer(
            SmallClassifier(channels, classes, widened(channels, classes, WIDTHS, total)),
            None,
            geometry,
        )
    localiser: nn.Module = ring
    if pipeline.localiser == "bic":
        localiser = BIC(cast(BICConfig, recipe.model))
    elif pipeline.localiser == "cnn":
        localiser = UnitCNN(channels, 2, widened(channels, 2, (8, 16, 32), localiser_parameters))
    remaining = total - parameters(localiser)
    widths = widened(channels, classes, (8, 16, 32), remaining)
    return Transformer(SmallClassifier(channels, classes, widths), localiser, geometry)
