"""Canonicaliser and classifier as one network: a spatial transformer that only rotates.

The canonicaliser is the localisation network. It can learn from the angle loss, from the
classifier's loss through the rotation, or from both. A *way* defines which loss reaches which
network. The networks are the same in every way; without a canonicaliser, the classifier is widened
by as many parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from radialbeams.front.deciding import Reading
from radialbeams.front.module import Outputs, TorchCanonicalizer
from radialbeams.front.pose import Pose
from radialbeams.nn.angles import circle_loss, to_unit
from radialbeams.nn.posterior import Posterior, answer, mean_direction, posterior, ring_loss
from radialbeams.nn.ring_network import RingBIC

# The angle by which an image is rotated back, and the outputs that its gradient reaches.
# `beam`: the likeliest beam and its offset; the gradient reaches only that offset (at most ±1.5
# beam steps), so a class loss can refine the angle but not move it to another beam.
# `mean`: the mean direction of the posterior; the gradient reaches every beam.
# `through`: the angle of `beam` with the gradient of `mean` (straight-through).
Answers = Literal["beam", "mean", "through"]
# The training images of the classifier.
ClassifierImages = Literal["upright", "turned", "localised"]


@dataclass(frozen=True)
class JointWay:
    """Which loss reaches which network."""

    title: str
    localises: bool = True  # False: no canonicaliser, and a wider classifier
    angle: float = 0.0  # weight of the angle loss
    downstream: float = 0.0  # share of the class loss's gradient that reaches the canonicaliser
    trained_on: ClassifierImages = "localised"
    answers: Answers = "beam"


class SmallClassifier(nn.Module):
    """Images (N, C, S, S) → class logits (N, K): two convolutions a stage, then the mean."""

    def __init__(self, channels: int, classes: int, widths: Sequence[int]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        maps = channels
        for width in widths:
            layers += [*_convolution(maps, width, 2), *_convolution(width, width, 1)]
            maps = width
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(maps, classes)

    def forward(self, images: Tensor) -> Tensor:
        features = self.features(images)  # (N, maps, s, s)
        logits: Tensor = self.head(features.mean((2, 3)))  # (N, K)
        return logits.float()


def _convolution(maps: int, width: int, stride: int) -> list[nn.Module]:
    convolution = nn.Conv2d(maps, width, 3, stride, 1, bias=False)
    return [convolution, nn.BatchNorm2d(width), nn.ReLU()]


class Localisation(TorchCanonicalizer):
    """The canonicaliser, with a choice of the outputs that the gradient of its estimate reaches."""

    def __init__(self, network: RingBIC, answers: Answers, **options: Any) -> None:
        super().__init__(network, **options)
        if answers not in get_args(Answers):
            names = ", ".join(get_args(Answers))
            raise ValueError(f"answers must be one of {names}; got {answers!r}.")
        self.answers = answers

    def read(self, outputs: Outputs, sure: bool = True) -> Reading:
        angle = self._angle(posterior(*outputs))
        # The confidence is not used here.
        return Reading(angle, torch.full_like(angle, math.nan), torch.zeros_like(angle))

    def _angle(self, distribution: Posterior) -> Tensor:
        if self.answers == "beam":
            return answer(distribution)
        mean = mean_direction(distribution)
        if self.answers == "mean":
            return mean
        return answer(distribution).detach() + (mean - mean.detach())


@dataclass(frozen=True)
class JointOutput:
    """The outputs of one pass; without a localisation network there are only logits."""

    logits: Tensor  # (N, K) of the classes
    angles: Tensor | None = None  # (N,) radians by which the images were rotated back
    outputs: tuple[Tensor, Tensor] | None = None  # (N, |B|) each, of the localisation network


class Joint(nn.Module):
    """Images (N, C, S, S) in [0, 1] → class logits, after rotation if there is a canonicaliser."""

    def __init__(
        self, classifier: SmallClassifier, localisation: Localisation | None = None
    ) -> None:
        super().__init__()
        self.localisation = localisation
        self.classifier = classifier

    def forward(self, images: Tensor, *, downstream: float = 1.0) -> JointOutput:
        """With a `downstream` of 0, a loss on the logits reaches only the classifier."""
        if self.localisation is None:
            return JointOutput(self.classifier(images))
        outputs = self.localisation.network(
            self.localisation.view_geometry(images)
        )  # (N, |B|) twice
        angles = self.localisation.read(outputs).angle  # (N,)
        passed = angles.detach()  # the same angles with a share of their gradient
        if downstream:
            passed = passed + downstream * (angles - passed)
        pose = Pose.from_angles(passed, (images.shape[-2], images.shape[-1]))
        upright = pose.apply_images(images)  # (N, C, S, S)
        return JointOutput(self.classifier(upright), angles, outputs)


def losses(
    model: Joint, way: JointWay, upright: Tensor, turned: Tensor, angles: Tensor, labels: Tensor
) -> tuple[Tensor, Tensor]:
    """The total loss of a way, and the circle loss of the angles.

    `upright` and `turned` are images (N, C, S, S) of the same parents, rotated by `angles` (N,).
    """
    if way.trained_on == "localised" or way.angle:
        output = model(turned, downstream=way.downstream)
    if way.trained_on == "upright":
        logits = model.classifier(upright)
    else:
        logits = output.logits if way.localises else model.classifier(turned)
    total = F.cross_entropy(logits, labels)
    if not way.localises:
        return total, torch.zeros_like(total)
    if way.angle:
        total = total + way.angle * ring_loss(angles, *output.outputs)[0].mean()
    return total, circle_loss(angles, to_unit(output.angles.detach())).mean()


# --- equal numbers of parameters ---


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def classifier_parameters(channels: int, classes: int, widths: Sequence[int]) -> int:
    """The parameters of a classifier, without building it: kernels, norms and the head."""
    before = (channels, *widths[:-1])
    stages = sum(9 * w * (maps + w) + 4 * w for maps, w in zip(before, widths, strict=True))
    return stages + (widths[-1] + 1) * classes


def widened(channels: int, classes: int, widths: Sequence[int], total: int) -> tuple[int, ...]:
    """The widths, scaled so that the classifier has about `total` parameters."""
    factors = (1 + step / 500 for step in range(2000))
    candidates = [tuple(round(factor * width) for width in widths) for factor in factors]
    return min(candidates, key=lambda w: abs(classifier_parameters(channels, classes, w) - total))
