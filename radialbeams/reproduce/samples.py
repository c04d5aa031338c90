"""How many training images are needed: pipelines of equal size over 1/64 to 1/1 of Fashion-MNIST.

The paper motivates canonicalisation by the sample complexity of augmentation, and hopes for spatial
transformers with its network inside. Compared, at equal parameters, steps and batches: a classifier
with augmentation, one that is equivariant to C8, a canonicaliser trained apart, and spatial
transformers whose localisation network is an ordinary CNN, the paper's network or the ring.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from radialbeams.front.pose import Pose
from radialbeams.front.view_geometry import ViewGeometry
from radialbeams.nn.angles import circle_loss, from_unit, to_unit
from radialbeams.nn.architectures import Config, Network
from radialbeams.nn.bic import BIC, BICConfig
from radialbeams.nn.losses import Loss, Losses, LossInputs
from radialbeams.nn.posterior import answer, posterior, ring_loss
from radialbeams.nn.ring_network import RingBIC, RingConfig
from radialbeams.nn.rotation import largest_view
from radialbeams.reproduce.group_equivariant import GroupClassifier, group_widths
from radialbeams.reproduce.joint import (
    SmallClassifier,
    classifier_parameters,
    parameters,
    widened,
)
from radialbeams.reproduce.joint_fit import TurnedImages, classes_of, labels_of
from radialbeams.reproduce.settings import Settings
from radialbeams.reproduce.trainings import Trained, Training
from radialbeams.training.data import ImageSet
from radialbeams.training.parts import Parts
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import Views, draw_angles

if TYPE_CHECKING:
    pass

NAME = "samples"
SEEDS = 3
STEPS = 1200
IMAGES, HELD_OUT = 60_000, 4_000
SHARES = (64, 16, 4, 1)  # of the training images, one in so many
PARENT = 28  # pixels
SIDE = 56  # of the images that are turned and classified
WIDTHS = (32, 64, 128)  # of the classifier behind a localisation network
TURNS = 2  # angles per held-out image
BEAMS, LENGTH = 32, 12

Localiser = Literal["none", "cnn", "bic", "ring"]


@dataclass(frozen=True)
class Pipeline:
    """What turns the image upright, what trains it, and what the classifier is trained on."""

    title: str
    localiser: Localiser = "none"
    angle: bool = True  # the localisation network learns from the angle loss
    downstream: bool = True  # … and from the class loss
    upright: bool = False  # the classifier is trained on upright images
    group: bool = False  # a classifier equivariant to C8


PIPELINES = {
    "augmented": Pipeline("rotation augmentation"),
    "c8": Pipeline("C8-equivariant CNN, augmentation", group=True),
    "apart": Pipeline("ring trained apart", "ring", downstream=False, upright=True),
    "stn": Pipeline("spatial transformer, CNN", "cnn", angle=False),
    "cnn": Pipeline("spatial transformer, CNN, angle loss too", "cnn"),
    "bic": Pipeline("spatial transformer, paper's network", "bic"),
    "ring": Pipeline("spatial transformer, ring", "ring"),
}


# --- the networks ---


def localiser_config(kind: Localiser, size: int) -> Config:
    """Networks of about 120,000 parameters; small parents only allow small leak-free views."""
    view = largest_view(size)
    if kind == "bic":
        return BICConfig(
            view_size=view,
            channels=1,
            num_beams=BEAMS,
            beam_length=LENGTH,
            epsilon=0,
            sampler="polar",
            latent=64,
        )
    return RingConfig(
        view_size=view,
        channels=1,
        num_beams=BEAMS,
        beam_length=LENGTH,
        epsilon=0,
        sampler="polar",
        stem=32,
        stem_stride=2,
        stages=(32, 48),
        width=64,
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
        assert self.localiser is not None
        outputs = self.localiser(self.view(images))
        if isinstance(outputs, tuple):
            found = answer(posterior(*outputs))
            loss = ring_loss(found.detach() if true is None else true, *outputs)[0]
        else:
            found = from_unit(outputs)
            loss = circle_loss(found.detach() if true is None else true, outputs)
        return found, loss.mean()

    @staticmethod
    def uprighted(images: Tensor, angles: Tensor) -> Tensor:
        return Pose.from_angles(angles, (images.shape[-2], images.shape[-1])).apply_images(images)


def transformer(pipeline: Pipeline, recipe: Recipe, classes: int) -> Transformer:
    """All pipelines have equal numbers of parameters, those of the ring's, to within 3%."""
    channels, view = recipe.model.channels, recipe.model.view_size
    ring = RingBIC(cast(RingConfig, localiser_config("ring", recipe.parent_size)))
    geometry = ViewGeometry(view, channels, recipe.parent_size)
    spent = parameters(ring)
    whole = classifier_parameters(channels, classes, WIDTHS) + spent
    if pipeline.group:
        found = GroupClassifier(channels, classes, group_widths(channels, classes, whole))
        return Transformer(found, None, geometry)
    if pipeline.localiser == "none":
        return Transformer(
            SmallClassifier(channels, classes, widened(channels, classes, WIDTHS, whole)),
            None,
            geometry,
        )
    localiser: nn.Module = ring
    if pipeline.localiser == "bic":
        localiser = BIC(cast(BICConfig, recipe.model))
    elif pipeline.localiser == "cnn":
        localiser = UnitCNN(channels, 2, widened(channels, 2, (16, 32, 64), spent))
    left = whole - parameters(localiser)
    widths = widened(channels, classes, (16, 32, 64), left)
    return Transformer(SmallClassifier(channels, classes, widths), localiser, geometry)


# --- training ---


def parts(pipeline: Pipeline, share: int) -> Parts:
    def network(recipe: Recipe, images: ImageSet) -> Network:
        return cast(Network, transformer(pipeline, recipe, len(classes_of(images))))

    def loss(recipe: Recipe, images: ImageSet, device: torch.device) -> Loss:
        return partial(pipeline_loss, pipeline, labels_of(images, classes_of(images), device))

    def training_views(recipe: Recipe) -> Views:
        return cast(Views, TurnedImages(SIDE))  # prepared and turned by the same calls

    def rows(images: ImageSet) -> Sequence[int]:
        return range(0, len(images), share)

    return Parts(
        network=network, loss=loss, training_views=training_views, rows=rows, keeps_model=False
    )


def pipeline_loss(
    pipeline: Pipeline, labels: Tensor, network: Transformer, given: LossInputs
) -> tuple[Tensor, Losses]:
    labels = labels[given.rows]
    zero = torch.zeros((), device=labels.device)
    if pipeline.localiser == "none":
        total = F.cross_entropy(network.classifier(given.views), labels)
        return total, Losses(0 * total.detach(), zero)
    angles, missed = network.angles(given.views, given.angles)
    if pipeline.upright:
        shown = given.upright()
    else:
        shown = network.uprighted(given.views, angles if pipeline.downstream else angles.detach())
    total = F.cross_entropy(network.classifier(shown), labels)
    if pipeline.angle:
        total = total + missed
    circle = circle_loss(given.angles, to_unit(angles.detach())).mean()
    return total, Losses(circle + 0 * total.detach(), zero)


def recipe(pipeline: Pipeline, seed: int, settings: Settings) -> Recipe:
    return Recipe(
        "fashion-mnist",
        localiser_config(pipeline.localiser, PARENT),
        PARENT,
        protocol="leakfree",
        batch=settings.pick(quick=32, full=128),
        steps=settings.pick(quick=30, full=STEPS),
        learning_rate=2e-3,
        schedule="one-cycle",
        weight_decay=0.05,
        clip=1.0,
        seed=seed,
    )


def trainings(settings: Settings) -> list[Training]:
    """All pipelines of the first seed, then all of the second; few images first."""
    return [
        Training(
            f"{name}-{share}-seed{seed}",
            recipe(pipeline, seed, settings),
            {"pipeline": name, "share": share},
            images=settings.pick(quick=2000, full=IMAGES),
            held_out=settings.pick(quick=200, full=HELD_OUT),
            measure=measure,
            parts=parts(pipeline, share),
        )
        for seed in settings.seeds_of(quick=1, full=SEEDS)
        for share in settings.pick(quick=(16, 1), full=SHARES)
        for name, pipeline in PIPELINES.items()
    ]


@torch.no_grad()
def measure(trained: Trained, batch: int = 500) -> dict[str, Any]:
    """Accuracy on turned and on upright held-out images, and the error of the angle."""
    model = cast(Transformer, trained.model).eval()
    images, device, turned = trained.held_out, trained.device, TurnedImages(SIDE)
    labels = labels_of(images, classes_of(trained.fit.images), device)
    right: dict[str, list[Tensor]] = {"turned": [], "upright": []}
    missed = []
    for draw in range(TURNS):
        angles = draw_angles("evaluation", draw, 0, len(images)).to(device)
        for start in range(0, len(images), batch):
            part = slice(start, start + batch)
            prepared = turned.prepare(images.images[part].to(device))
            for name, turns in (("turned", angles[part]), ("upright", 0 * angles[part])):
                logits, found = model(turned.turn(prepared, turns))
                right[name].append((logits.argmax(-1) == labels[part]).float())
                if found is not None and name == "turned":
                    missed.append(torch.cos(found - angles[part]).clamp(-1, 1).acos())
    result: dict[str, Any] = {name: torch.cat(rows).mean().item() for name, rows in right.items()}
    if missed:
        errors = torch.cat(missed)
        result |= {
            "mean": math.degrees(errors.mean().item()),
            "median": math.degrees(errors.median().item()),
        }
    return {**result, "n": TURNS * len(images), "trained_on": len(trained.fit.places)}
