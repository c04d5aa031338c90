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

    If S allows it they are leak-free views. Smaller parents, such as those of 28 px, are
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
    seen = None if TurnedImages(design.side).leakfree(recipe.parent_size) else recipe.parent_size
    if not isinstance(recipe.model, RingConfig):
        raise TypeError(f"Expected a ring to localise with; got {recipe.model.architecture}.")
    localisation = Localisation(RingBIC(recipe.model), way.answers, parent_size=seen)
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
    """What `Fit` trains the joint network with, in one of the ways."""

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
        validation=partial(judged, design),
        keeps_model=False,  # judged by who runs it; nobody needs the weights
    )


def joint_loss(
    way: JointWay, labels: Tensor, network: Joint, given: LossInputs
) -> tuple[Tensor, Losses]:
    upright = given.upright() if way.shown == "upright" else given.views
    total, circle = losses(network, way, upright, given.views, given.angles, labels[given.rows])
    # Where no angle is learnt the circle loss is 0, unless the run has diverged.
    reported = circle + 0 * total.detach()
    return total, Losses(reported, torch.zeros_like(reported))


# --- along the way ---


def judged(design: JointDesign, fit: Fit) -> JsonDict:
    """A line for the log: both splits, on evenly spaced images."""
    if fit.held_out is None:
        raise ValueError("validate_every needs held_out images; give some or leave it 0.")
    most = min(PROBES, len(fit.held_out))
    model = cast(Joint, fit.averaged())
    sets = {"train": fit.images, "test": fit.held_out}
    found = {name: judge(model, probe_of(fit, design, one, most)) for name, one in sets.items()}
    return {"joint": found}


def probe_of(
    fit: Fit, design: JointDesign, images: ImageSet, most: int | None = None
) -> AccuracyProbe:
    """Evenly spaced images, ready to be turned."""
    number = len(images) if most is None else min(most, len(images))
    chosen = images.select([k * len(images) // number for k in range(number)])
    turned, classes = TurnedImages(design.side), classes_of(fit.images)
    prepared = turned.prepare(chosen.images.to(fit.device))
    return AccuracyProbe(turned, prepared, labels_of(chosen, classes, fit.device), classes)


def along(fit: Fit) -> list[JsonDict]:
    """What was judged so far: the step, and both splits."""
    lines = [json.loads(line) for line in fit.folder.metrics.open(encoding="utf-8")]
    return [{"step": line["step"], **line["joint"]} for line in lines if "joint" in line]


# --- judging -----------------------------------------------------------------------------------


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
def answers_of(
    model: Joint, probe: AccuracyProbe, angles: Tensor, *, averaged: int = 1, batch: int = 500
) -> tuple[Tensor, Tensor | None]:
    """Class probabilities (N, K) and residual angles (N,) of the images rotated by `angles`.

    With `averaged`, the probabilities are the mean over that many rotations of each image.
    """
    model.eval()
    chances, residuals = [], []
    for start in range(0, len(angles), batch):
        part = slice(start, start + batch)
        images = probe.turned.turn(probe.prepared[part], angles[part])
        seen = model(images)
        chance = seen.logits.softmax(-1)
        for turn in range(1, averaged):
            more = torch.full_like(angles[part], turn * TURN / averaged)
            again = Pose.from_angles(more, (images.shape[-2], images.shape[-1]))
            chance = chance + model(again.apply_images(images)).logits.softmax(-1)
        chances.append(chance / averaged)
        if seen.angles is not None:
            residuals.append(wrap(seen.angles - angles[part]))
    return torch.cat(chances), torch.cat(residuals) if residuals else None


def judge(model: Joint, probe: AccuracyProbe) -> dict[str, float]:
    """Accuracy on images at any angle and on upright ones, and the error of the angle."""
    angles = probe.angles(0)
    chances, residuals = answers_of(model, probe, angles)
    found = {
        "turned": _accuracy(chances, probe.labels),
        "upright": _accuracy(answers_of(model, probe, 0 * angles)[0], probe.labels),
    }
    if residuals is not None:
        found |= {"mean": _degrees(residuals.abs()), "median": _degrees(residuals.abs(), True)}
    return {name: float(f"{value:.5g}") for name, value in found.items()}


def judge_fully(model: Joint, probe: AccuracyProbe) -> JsonDict:
    """The same for several angles of each image, and statistics of the residual angles.

    `between_turns`: the angle between the results of two rotations of one image, in degrees; 0
    means that it is always rotated to the same pose, upright or not. `within_class`: the error
    after each class is corrected by a constant.
    """
    draws = [answers_of(model, probe, probe.angles(draw)) for draw in range(TURNS)]
    rights = [(chances.argmax(-1) == probe.labels).float() for chances, _ in draws]
    found: JsonDict = {
        "turned": torch.stack(rights).mean().item(),
        "upright": judge(model, probe)["upright"],
        "n": len(probe.labels) * TURNS,
    }
    residuals = [residual for _, residual in draws if residual is not None]
    if not residuals:
        averaged = [
            answers_of(model, probe, probe.angles(draw), averaged=AVERAGED)[0]
            for draw in range(TURNS)
        ]
        found["averaged"] = sum(_accuracy(chance, probe.labels) for chance in averaged) / TURNS
        return found
    errors = torch.cat(residuals)
    found |= {
        "mean": _degrees(errors.abs()),
        "median": _degrees(errors.abs(), True),
        "flips": (errors.abs() >= FLIPPED).float().mean().item(),
        "between_turns": _degrees(wrap(residuals[0] - residuals[1]).abs()),
        **_by_class(residuals[0], rights[0], probe),
    }
    return found


def _by_class(residuals: Tensor, right: Tensor, probe: AccuracyProbe) -> JsonDict:
    """The mean pose of each class, its concentration, and the accuracy on it."""
    rest = torch.empty_like(residuals)
    rows = []
    for number, name in enumerate(probe.classes):
        mine = probe.labels == number
        if not bool(mine.any()):
            continue
        direction = torch.polar(torch.ones_like(residuals[mine]), residuals[mine]).mean()
        rest[mine] = wrap(residuals[mine] - direction.angle()).abs()
        rows.append(
            {
                "name": name,
                "direction": math.degrees(direction.angle().item()),
                "length": direction.abs().item(),
                "accuracy": right[mine].mean().item(),
            }
        )
    return {"within_class": _degrees(rest), "classes": rows}


def _accuracy(chances: Tensor, labels: Tensor) -> float:
    return (chances.argmax(-1) == labels).float().mean().item()


def _degrees(angles: Tensor, median: bool = False) -> float:
    return math.degrees((angles.median() if median else angles.mean()).item())
