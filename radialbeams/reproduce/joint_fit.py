"""Trains canonicaliser and classifier in one of the ways, and evaluates them during training."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import cast

import torch
from torch import Tensor

from radialbeams.front.pose import Pose
from radialbeams.nn.angles import TURN, wrap
from radialbeams.nn.architectures import Network
from radialbeams.nn.losses import Loss, Losses, LossInputs
from radialbeams.nn.ring_network import RingBIC, RingConfig
from radialbeams.nn.rotation import REACH, blur, blur_sigma, gaussian_matrix, largest_view, render
from radialbeams.reproduce.joint import (
    Joint,
    JointWay,
    Localisation,
    SmallClassifier,
    classifier_parameters,
    losses,
    parameters,
    widened,
)
from radialbeams.stored import JsonDict
from radialbeams.training.data import ImageSet
from radialbeams.training.fit import Fit
from radialbeams.training.parts import Parts
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import Views, as_floats, draw_angles

PROBES = 2000  # images of each split for evaluation during training
TURNS = 2  # angles per image at the end
AVERAGED = 16  # rotations of an image whose predictions are averaged
FINE = 0.5  # σ of small parents' images, in parent pixels
FLIPPED = math.radians(150)


@dataclass(frozen=True)
class TurnedImages:
    """Parents (N, C, W, W) rotated about their centre: images (N, C, S, S), a disc on black.

    If S is small enough, they are leak-free views. Smaller parents, such as those of 28 px, are
    upsampled: blur and bicubic kernel together are a Gaussian of half a parent pixel, and the disc
    is the largest possible. These images are for the classifier; the network that estimates the
    angle gets a leak-free view of them.
    """

    side: int

    def leakfree(self, parent_size: int) -> bool:
        return self.side <= largest_view(parent_size)

    def prepare(self, parents: Tensor) -> Tensor:
        width = parents.shape[-1]
        sigma = blur_sigma(width, self.side) if self.leakfree(width) else FINE
        return blur(as_floats(parents), _kernel(width, sigma, parents.device))

    def turn(
        self,
        prepared: Tensor,
        angles: Tensor,
        zoom: Tensor | None = None,
        shift: Tensor | None = None,
    ) -> Tensor:
        if not self.leakfree(prepared.shape[-1]):
            zoom = prepared.new_full((prepared.shape[0], 2), REACH)  # the whole width is visible
        return render(prepared, angles, self.side, zoom=zoom, shift=shift).clamp(0, 1)


@cache
def _kernel(size: int, sigma: float, device: torch.device) -> Tensor:
    return gaussian_matrix(size, sigma).to(device)


@dataclass(frozen=True)
class JointDesign:
    """The parts of the joint network that are not in the recipe of the localisation network."""

    side: int  # S of the images
    widths: tuple[int, ...]  # of the classifier's stages


def joint_network(recipe: Recipe, way: JointWay, design: JointDesign, classes: int) -> Joint:
    """The network of a way; all ways have equal numbers of parameters to within 1%."""
    sizes = (recipe.model.channels, classes)
    # The network sees leak-free images directly, and others through a leak-free view.
    parent_size = (
        None if TurnedImages(design.side).leakfree(recipe.parent_size) else recipe.parent_size
    )
    if not isinstance(recipe.model, RingConfig):
        raise TypeError(f"Expected a ring to localise with; got {recipe.model.architecture}.")
    localisation = Localisation(RingBIC(recipe.model), way.answers, parent_size=parent_size)
    if way.localises:
        return Joint(SmallClassifier(*sizes, design.widths), localisation)
    total = classifier_parameters(*sizes, design.widths) + parameters(localisation)
    return Joint(SmallClassifier(*sizes, widened(*sizes, design.widths, total)))


def classes_of(images: ImageSet) -> tuple[str, ...]:
    return tuple(sorted(set(images.groups)))


def labels_of(images: ImageSet, classes: Sequence[str], device: torch.device) -> Tensor:
    """(N,) integers, by the classes of the training split."""
    numbers = {name: number for number, name in enumerate(classes)}
    if unknown := sorted(set(images.groups) - set(numbers)):
        raise ValueError(
            f"Expected the classes of the training images; {', '.join(unknown[:5])} are in the "
            "test images only. Use more training images."
        )
    return torch.tensor([numbers[group] for group in images.groups], device=device)


def joint_parts(way: JointWay, design: JointDesign) -> Parts:
    """The parts with which `Fit` trains the joint network in one of the ways."""

    def network(recipe: Recipe, images: ImageSet) -> Network:
        return cast(Network, joint_network(recipe, way, design, len(classes_of(images))))

    def loss(recipe: Recipe, images: ImageSet, device: torch.device) -> Loss:
        return partial(joint_loss, way, labels_of(images, classes_of(images), device))

    def training_views(recipe: Recipe) -> Views:
        return cast(Views, TurnedImages(design.side))  # prepared and turned by the same calls

    return Parts(
        network=network,
        loss=loss,
        training_views=training_views,
        validation=partial(validation_line, design),
        keeps_model=False,  # it is evaluated during training; the weights are not needed
    )


def joint_loss(
    way: JointWay, labels: Tensor, network: Joint, inputs: LossInputs
) -> tuple[Tensor, Losses]:
    upright = inputs.upright() if way.trained_on == "upright" else inputs.views
    total, circle = losses(network, way, upright, inputs.views, inputs.angles, labels[inputs.rows])
    # Without an angle the circle loss is 0, or not finite if the run has diverged.
    reported = circle + 0 * total.detach()
    return total, Losses(reported, torch.zeros_like(reported))


# --- evaluation during training ---


def validation_line(design: JointDesign, fit: Fit) -> JsonDict:
    """A line for the log: evaluations on evenly spaced images of both splits."""
    if fit.held_out is None:
        raise ValueError("validate_every needs held_out images; give some or leave it 0.")
    limit = min(PROBES, len(fit.held_out))
    model = cast(Joint, fit.averaged())
    sets = {"train": fit.images, "test": fit.held_out}
    results = {
        name: evaluate(model, probe_of(fit, design, images, limit)) for name, images in sets.items()
    }
    return {"joint": results}


def probe_of(
    fit: Fit, design: JointDesign, images: ImageSet, limit: int | None = None
) -> AccuracyProbe:
    """Evenly spaced images, prepared for rotation."""
    number = len(images) if limit is None else min(limit, len(images))
    chosen = images.select([k * len(images) // number for k in range(number)])
    turned, classes = TurnedImages(design.side), classes_of(fit.images)
    prepared = turned.prepare(chosen.images.to(fit.device))
    return AccuracyProbe(turned, prepared, labels_of(chosen, classes, fit.device), classes)


def learning_curve(fit: Fit) -> list[JsonDict]:
    """The evaluations during training: for each, the step and both splits."""
    lines = [json.loads(line) for line in fit.folder.metrics.open(encoding="utf-8")]
    return [{"step": line["step"], **line["joint"]} for line in lines if "joint" in line]


# --- evaluation ---


@dataclass(frozen=True)
class AccuracyProbe:
    """Images for the evaluation of a network."""

    turned: TurnedImages
    prepared: Tensor  # (N, C, W, W)
    labels: Tensor  # (N,)
    classes: Sequence[str]

    def angles(self, draw: int) -> Tensor:
        return draw_angles("evaluation", draw, 0, len(self.labels)).to(self.labels.device)


@torch.no_grad()
def predictions(
    model: Joint, probe: AccuracyProbe, angles: Tensor, *, averaged: int = 1, batch: int = 500
) -> tuple[Tensor, Tensor | None]:
    """Class probabilities (N, K) and residual angles (N,) of the images rotated by `angles`.

    With `averaged`, the probabilities are the mean over that many rotations of each image.
    """
    model.eval()
    probabilities, residuals = [], []
    for start in range(0, len(angles), batch):
        chunk = slice(start, start + batch)
        images = probe.turned.turn(probe.prepared[chunk], angles[chunk])
        output = model(images)
        probability = output.logits.softmax(-1)
        for turn in range(1, averaged):
            extra = torch.full_like(angles[chunk], turn * TURN / averaged)
            pose = Pose.from_angles(extra, (images.shape[-2], images.shape[-1]))
            probability = probability + model(pose.apply_images(images)).logits.softmax(-1)
        probabilities.append(probability / averaged)
        if output.angles is not None:
            residuals.append(wrap(output.angles - angles[chunk]))
    return torch.cat(probabilities), torch.cat(residuals) if residuals else None


def evaluate(model: Joint, probe: AccuracyProbe) -> dict[str, float]:
    """Accuracy on images at any angle and on upright ones, and the error of the angle."""
    angles = probe.angles(0)
    probabilities, residuals = predictions(model, probe, angles)
    result = {
        "turned": _accuracy(probabilities, probe.labels),
        "upright": _accuracy(predictions(model, probe, 0 * angles)[0], probe.labels),
    }
    if residuals is not None:
        result |= {"mean": _degrees(residuals.abs()), "median": _degrees(residuals.abs(), True)}
    return {name: float(f"{value:.5g}") for name, value in result.items()}


def evaluate_fully(model: Joint, probe: AccuracyProbe) -> JsonDict:
    """The evaluation at several angles of each image, with statistics of the residual angles.

    `between_turns`: the angle between the results of two rotations of one image, in degrees; 0
    means that it is always rotated to the same pose, upright or not. `within_class`: the error
    after each class is corrected by a constant.
    """
    draws = [predictions(model, probe, probe.angles(draw)) for draw in range(TURNS)]
    correct = [(probabilities.argmax(-1) == probe.labels).float() for probabilities, _ in draws]
    result: JsonDict = {
        "turned": torch.stack(correct).mean().item(),
        "upright": evaluate(model, probe)["upright"],
        "n": len(probe.labels) * TURNS,
    }
    residuals = [residual for _, residual in draws if residual is not None]
    if not residuals:
        averaged = [
            predictions(model, probe, probe.angles(draw), averaged=AVERAGED)[0]
            for draw in range(TURNS)
        ]
        result["averaged"] = (
            sum(_accuracy(probability, probe.labels) for probability in averaged) / TURNS
        )
        return result
    errors = torch.cat(residuals)
    result |= {
        "mean": _degrees(errors.abs()),
        "median": _degrees(errors.abs(), True),
        "flips": (errors.abs() >= FLIPPED).float().mean().item(),
        "between_turns": _degrees(wrap(residuals[0] - residuals[1]).abs()),
        **_by_class(residuals[0], correct[0], probe),
    }
    return result


def _by_class(residuals: Tensor, correct: Tensor, probe: AccuracyProbe) -> JsonDict:
    """The mean pose of each class, its concentration, and the accuracy on it."""
    corrected = torch.empty_like(residuals)
    rows = []
    for number, name in enumerate(probe.classes):
        members = probe.labels == number
        if not bool(members.any()):
            continue
        direction = torch.polar(torch.ones_like(residuals[members]), residuals[members]).mean()
        corrected[members] = wrap(residuals[members] - direction.angle()).abs()
        rows.append(
            {
                "name": name,
                "direction": math.degrees(direction.angle().item()),
                "length": direction.abs().item(),
                "accuracy": correct[members].mean().item(),
            }
        )
    return {"within_class": _degrees(corrected), "classes": rows}


def _accuracy(probabilities: Tensor, labels: Tensor) -> float:
    return (probabilities.argmax(-1) == labels).float().mean().item()


def _degrees(angles: Tensor, median: bool = False) -> float:
    return math.degrees((angles.median() if median else angles.mean()).item())
