"""The loss of `prior-weight`, and its measurements: the two gradients, shifts found, orbits."""

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
    embeddings: Tensor = network.context(beams) if place == "after" else beams
    return embeddings


def weighted(place: Place, weight: float) -> Loss:
    """The circle loss plus the weighted prior's, on embeddings before or after the hub."""

    def loss(network: BIC, inputs: LossInputs) -> tuple[Tensor, Losses]:
        turned = network.encoder(network.beams(inputs.views))  # (N, |B|, L)
        context = network.context(turned)
        circle = circle_loss(inputs.angles, network.decoder(context)).mean()
        prior = circle.new_zeros(())
        if inputs.prior is not None:
            upright = embedded(network, inputs.upright(), place)
            chosen = context if place == "after" else turned
            prior = prior_loss(inputs.angles, inputs.prior(upright, chosen)).mean()
        return circle + weight * prior, Losses(circle.detach(), prior.detach())

    return loss


def compare_gradients(fit: Fit) -> JsonDict:
    """A line for the log: a comparison of the two gradients on held-out images."""
    if fit.held_out is None:
        raise ValueError("validate_every needs held_out images; give some or leave it 0.")
    return {"gradients": gradients(fit.averaged(), fit.views, fit.held_out, fit.device)}


def gradients(model: Network, views: Views, images: ImageSet, device: torch.device) -> JsonDict:
    """For both places, the cosine of the two losses' gradients and the ratio of their norms.

    The gradients are those of the weights that the prior trains: the encoder's and, after the hub,
    also the context encoder's.
    """
    network = _bic(model)
    parents, angles = _batch(images, device)
    upright, turned = views.upright(parents), views.render(parents, angles)
    # cuDNN refuses gradients of an LSTM that is not in training.
    with torch.backends.cudnn.flags(enabled=False):
        return {place: _compare_at(network, place, upright, turned, angles) for place in PLACES}


def _compare_at(
    network: BIC, place: Place, upright: Tensor, turned: Tensor, angles: Tensor
) -> dict[str, float]:
    prior = ToeplitzPrior(BEAMS).to(angles.device)
    shared = list(network.encoder.parameters())
    shared += list(network.context.parameters()) if place == "after" else []
    embeddings = embedded(network, turned, "before")
    context = network.context(embeddings)
    circle = circle_loss(angles, network.decoder(context)).mean()
    chosen = context if place == "after" else embeddings
    prior_term = prior_loss(angles, prior(embedded(network, upright, place), chosen)).mean()
    circle_gradient, prior_gradient = (
        _flat_gradient(part, shared) for part in (circle, prior_term)
    )
    result = {
        "cosine": F.cosine_similarity(circle_gradient, prior_gradient, dim=0, eps=1e-20).item(),
        "ratio": (prior_gradient.norm() / circle_gradient.norm().clamp_min(1e-20)).item(),
        "prior_loss": prior_term.item(),
    }
    return {name: float(f"{value:.4g}") for name, value in result.items()}


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
    """The share of images whose strongest diagonal is the true shift; chance is 1/|B|."""
    model, prior = _bic(network), ToeplitzPrior(BEAMS).to(device)
    angles = draw_angles("evaluation", 0, 0, len(images), group="cyclic", num_beams=BEAMS)
    correct = dict.fromkeys(PLACES, 0)
    for start in range(0, len(images), BATCH):
        parents = images[start : start + BATCH].to(device)
        turns = angles[start : start + BATCH].to(device)
        upright, turned = views.upright(parents), views.render(parents, turns)
        true = torch.round(turns * (BEAMS / (2 * torch.pi))).long() % BEAMS
        for place in PLACES:
            logs = prior(embedded(model, upright, place), embedded(model, turned, place))
            correct[place] += int((logs.argmax(dim=-1) == true).sum())
    return {place: count / len(images) for place, count in correct.items()}


def measure(trained: Trained, turns: int = fine_orbit.TURNS, objects: int = OBJECTS) -> Record:
    lines = [json.loads(line) for line in trained.fit.folder.metrics.open(encoding="utf-8")]
    model, views, device = trained.model, trained.fit.views, trained.device
    images = trained.held_out
    along = [{"step": line["step"], **line["gradients"]} for line in lines if "gradients" in line]
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
    """The orbits of a few images, for `topology`; without a prior, also before training."""
    networks = {"trained": _bic(trained.model)}
    places: dict[str, tuple[str, ...]] = {"trained": PLACES}
    if trained.recipe.prior == "off":
        networks["untrained"] = _untrained(trained)
        places["untrained"] = ("before", "pixels") if trained.recipe.seed == 0 else ("before",)
    images, records = trained.held_out.images, []
    for number in range(objects):
        image = images[number * len(images) // objects]
        for kind, network in networks.items():
            for place in places[kind]:
                cloud = fine_orbit.embeddings(
                    network, trained.fit.views, image, turns, place, trained.device
                )
                record: Record = {"image": number, "kind": kind, "place": place}
                record |= fine_orbit.describe(cloud, seed=number)
                if number == 0 and trained.recipe.seed == 0:
                    record["projected"] = fine_orbit.projected(cloud)
                records.append(record)
    return records


def _untrained(trained: Trained) -> BIC:
    """The network before its first step."""
    torch.manual_seed(trained.recipe.seed)
    return _bic(build(trained.recipe.model).to(trained.device).eval())
