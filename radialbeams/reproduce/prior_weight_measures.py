"""The loss of `prior-weight`, and what it measures: the two gradients, shifts found, and orbits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from radialbeams.nn.angles import circle_loss
from radialbeams.nn.architectures import Network, build
from radialbeams.nn.bic import BIC
from radialbeams.nn.losses import Loss, Losses, LossInputs
from radialbeams.nn.prior import ToeplitzPrior, prior_loss
from radialbeams.reproduce import fine_orbit
from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.trainings import Trained, errors
from radialbeams.stored import JsonDict
from radialbeams.training.data import ImageSet
from radialbeams.training.fit import Fit
from radialbeams.training.views import Views, draw_angles

Place = Literal["before", "after"]
PLACES: tuple[Place, ...] = ("before", "after")
BEAMS = 32
BATCH = 128
OBJECTS = 3  # images with an orbit


def embedded(network: BIC, views: Tensor, place: Place) -> Tensor:
    """(N, C, S, S) → (N, |B|, L), before the hub or after it."""
    beams = network.encoder(network.beams(views))
    found: Tensor = network.context(beams) if place == "after" else beams
    return found


def weighted(place: Place, weight: float) -> Loss:
    """The circle loss plus the prior's, with a weight, on embeddings before or after the hub."""

    def loss(network: BIC, given: LossInputs) -> tuple[Tensor, Losses]:
        turned = network.encoder(network.beams(given.views))  # (N, |B|, L)
        context = network.context(turned)
        circle = circle_loss(given.angles, network.decoder(context)).mean()
        prior = circle.new_zeros(())
        if given.prior is not None:
            upright = embedded(network, given.upright(), place)
            chosen = context if place == "after" else turned
            prior = prior_loss(given.angles, given.prior(upright, chosen)).mean()
        return circle + weight * prior, Losses(circle.detach(), prior.detach())

    return loss


def compared(fit: Fit) -> JsonDict:
    """A line for the log: the two gradients on held-out images."""
    if fit.held_out is None:
        raise ValueError("validate_every needs held_out images; give some or leave it 0.")
    return {"gradients": gradients(fit.averaged(), fit.views, fit.held_out, fit.device)}


def gradients(model: Network, views: Views, images: ImageSet, device: torch.device) -> JsonDict:
    """For both places, the cosine of the two losses' gradients and the ratio of their norms.

    With respect to the weights that the prior trains: the encoder's, and after the hub those of the
    context encoder too.
    """
    network = _bic(model)
    parents, angles = _batch(images, device)
    upright, turned = views.upright(parents), views.render(parents, angles)
    # cuDNN refuses gradients of an LSTM that is not in training.
    with torch.backends.cudnn.flags(enabled=False):
        return {place: _compared(network, place, upright, turned, angles) for place in PLACES}


def _compared(
    network: BIC, place: Place, upright: Tensor, turned: Tensor, angles: Tensor
) -> dict[str, float]:
    prior = ToeplitzPrior(BEAMS).to(angles.device)
    shared = list(network.encoder.parameters())
    shared += list(network.context.parameters()) if place == "after" else []
    embeddings = embedded(network, turned, "before")
    context = network.context(embeddings)
    angle = circle_loss(angles, network.decoder(context)).mean()
    chosen = context if place == "after" else embeddings
    shift = prior_loss(angles, prior(embedded(network, upright, place), chosen)).mean()
    one, two = (_flat_gradient(part, shared) for part in (angle, shift))
    found = {
        "cosine": F.cosine_similarity(one, two, dim=0, eps=1e-20).item(),
        "ratio": (two.norm() / one.norm().clamp_min(1e-20)).item(),
        "prior_loss": shift.item(),
    }
    return {name: float(f"{value:.4g}") for name, value in found.items()}


def _flat_gradient(loss: Tensor, weights: Sequence[Tensor]) -> Tensor:
    parts = torch.autograd.grad(loss, weights, retain_graph=True)
    return torch.cat([part.flatten() for part in parts])


def _batch(images: ImageSet, device: torch.device) -> tuple[Tensor, Tensor]:
    angles = draw_angles("evaluation", 0, 0, len(images), group="cyclic", num_beams=BEAMS)
    rows = [k * len(images) // min(BATCH, len(images)) for k in range(min(BATCH, len(images)))]
    return images.images[rows].to(device), angles[rows].to(device)


def _bic(model: Network) -> BIC:
    if not isinstance(model, BIC):
        raise TypeError(f"Expected the paper's network; got {type(model).__name__}.")
    return model


@torch.inference_mode()
def shifts_found(
    network: Network, views: Views, images: Tensor, device: torch.device
) -> dict[str, float]:
    """How often the strongest diagonal of the similarities is the true shift; chance is 1/|B|."""
    model, prior = _bic(network), ToeplitzPrior(BEAMS).to(device)
    angles = draw_angles("evaluation", 0, 0, len(images), group="cyclic", num_beams=BEAMS)
    right = dict.fromkeys(PLACES, 0)
    for start in range(0, len(images), BATCH):
        parents = images[start : start + BATCH].to(device)
        turns = angles[start : start + BATCH].to(device)
        upright, turned = views.upright(parents), views.render(parents, turns)
        true = torch.round(turns * (BEAMS / (2 * torch.pi))).long() % BEAMS
        for place in PLACES:
            logs = prior(embedded(model, upright, place), embedded(model, turned, place))
            right[place] += int((logs.argmax(dim=-1) == true).sum())
    return {place: count / len(images) for place, count in right.items()}


def measure(trained: Trained, turns: int = fine_orbit.TURNS, objects: int = OBJECTS) -> Record:
    lines = [json.loads(line) for line in trained.fit.folder.metrics.open(encoding="utf-8")]
    model, views, device = trained.model, trained.fit.views, trained.device
    images = trained.held_out
    along = [{"step": one["step"], **one["gradients"]} for one in lines if "gradients" in one]
    return {
        **errors(trained),
        "shifts": shifts_found(model, views, images.images, device),
        "gradients": gradients(model, views, images, device),
        "along": along,
        "orbits": orbits(trained, turns, objects),
    }


def measure_quickly(trained: Trained) -> Record:
    return measure(trained, turns=64, objects=1)


def orbits(trained: Trained, turns: int, objects: int) -> list[Record]:
    """For `topology`: the orbits of a few images. Without a prior also before training."""
    networks = {"trained": _bic(trained.model)}
    places: dict[str, tuple[str, ...]] = {"trained": PLACES}
    if trained.recipe.prior == "off":
        networks["untrained"] = _untrained(trained)
        places["untrained"] = ("before", "pixels") if trained.recipe.seed == 0 else ("before",)
    images, found = trained.held_out.images, []
    for number in range(objects):
        image = images[number * len(images) // objects]
        for kind, network in networks.items():
            for place in places[kind]:
                cloud = fine_orbit.embeddings(
                    network, trained.fit.views, image, turns, place, trained.device
                )
                one: Record = {"image": number, "kind": kind, "place": place}
                one |= fine_orbit.describe(cloud, seed=number)
                if number == 0 and trained.recipe.seed == 0:
                    one["projected"] = fine_orbit.projected(cloud)
                found.append(one)
    return found


def _untrained(trained: Trained) -> BIC:
    """The network before its first step."""
    torch.manual_seed(trained.recipe.seed)
    return _bic(build(trained.recipe.model).to(trained.device).eval())
