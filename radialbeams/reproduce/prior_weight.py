"""The Toeplitz prior at weights from 0.01 to 1, in trainings that converge.

`prior` follows the paper: a constant rate, and weights of 1. Here the schedule is the one that
converges, the prior compares embeddings before the hub is added (the encoder's) or after it (the
context encoder's), and its weight varies. If a lighter prior does no harm, it was too heavy. If the
gradients of both losses are orthogonal and reaching the prior's goal changes nothing, it is a
second task.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from radialbeams.nn.angles import circle_loss
from radialbeams.nn.architectures import Network, build
from radialbeams.nn.bic import BIC
from radialbeams.nn.losses import Loss, Losses, LossInputs
from radialbeams.nn.prior import ToeplitzPrior, prior_loss
from radialbeams.reproduce import fine_orbit, paper
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.seed_statistics import compare, spread, unclear
from radialbeams.reproduce.settings import QUICK, Settings
from radialbeams.reproduce.trainings import Trained, Training, errors
from radialbeams.training.data import ImageSet
from radialbeams.training.fit import Fit
from radialbeams.training.parts import Parts
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import Protocol, draw_angles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "prior-weight"
BEAMS = 32
SEEDS = 3
# Of COIL-100's 5,721 and 1,479: evenly spaced, few enough to take along to a borrowed GPU.
IMAGES, HELD_OUT = 1550, 440
STEPS = 2500
PROTOCOLS: tuple[Protocol, ...] = ("paper", "leakfree")
Place = Literal["before", "after"]
PLACES: tuple[Place, ...] = ("before", "after")
WEIGHTS = (0.01, 0.1, 1.0)
BATCH = 128
JUDGED = 8  # times that the gradients are compared during training
OBJECTS = 3  # images with an orbit


@dataclass(frozen=True)
class Kind:
    """One kind of training; its runs differ only in the seed. Without a prior the weight is 0."""

    protocol: Protocol
    place: Place = "after"
    weight: float = 0.0

    @property
    def name(self) -> str:
        if not self.weight:
            return f"{self.protocol}-off"
        return f"{self.protocol}-{self.place}-{self.weight:g}"


def kinds() -> list[Kind]:
    """The extremes first."""
    found = [Kind(protocol) for protocol in PROTOCOLS]
    return found + [
        Kind(protocol, place, weight)
        for weight in sorted(WEIGHTS, reverse=True)
        for place in PLACES
        for protocol in PROTOCOLS
    ]


def recipe(kind: Kind, seed: int, settings: Settings) -> Recipe:
    size = settings.pick(quick=48, full=128)
    found = Recipe(
        "coil100",
        paper.network(kind.protocol, size, settings, latent=32, num_beams=BEAMS),
        size,
        protocol=kind.protocol,
        group="cyclic",
        prior="full" if kind.weight else "off",
        batch=settings.pick(quick=32, full=BATCH),
        steps=settings.pick(quick=60, full=STEPS),
        seed=seed,
    )
    return paper.fitting(found, settings)


def trainings(settings: Settings) -> list[Training]:
    """All kinds of the first seed, then all of the second: what is cut off leaves whole seeds."""
    return [
        Training(
            f"{kind.name}-seed{seed}",
            recipe(kind, seed, settings),
            {"kind": kind.name},
            images=settings.pick(quick=300, full=IMAGES),
            held_out=settings.pick(quick=60, full=HELD_OUT),
            validations=settings.pick(quick=2, full=JUDGED),
            measure=measure_quickly if settings.quick else measure,
            parts=parts(kind),
        )
        for seed in settings.seeds_of(quick=1, full=SEEDS)
        for kind in kinds()
    ]


def parts(kind: Kind) -> Parts:
    def loss(recipe: Recipe, images: ImageSet, device: torch.device) -> Loss:
        return weighted(kind.place, kind.weight)

    return Parts(loss=loss, validation=compared)


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


def embedded(network: BIC, views: Tensor, place: Place) -> Tensor:
    """(N, C, S, S) → (N, |B|, L), before the hub or after it."""
    beams = network.encoder(network.beams(views))
    found: Tensor = network.context(beams) if place == "after" else beams
    return found


# --- what is measured ---


def compared(fit: Fit) -> dict[str, Any]:
    """A line for the log: the two gradients on held-out images."""
    if fit.held_out is None:
        raise ValueError("validate_every needs held_out images; give some or leave it 0.")
    return {"gradients": gradients(fit.averaged(), fit, fit.held_out)}


def gradients(model: Network, fit: Fit, images: ImageSet) -> dict[str, Any]:
    """For both places, the cosine of the two losses' gradients and the ratio of their norms.

    With respect to the weights that the prior trains: the encoder's, and after the hub those of the
    context encoder too.
    """
    network = _bic(model)
    parents, angles = _batch(images, fit.device)
    upright, turned = fit.views.upright(parents), fit.views.render(parents, angles)
    prior = ToeplitzPrior(BEAMS).to(fit.device)
    found = {}
    # cuDNN refuses gradients of an LSTM that is not in training.
    with torch.backends.cudnn.flags(enabled=False):
        for place in PLACES:
            shared = list(network.encoder.parameters())
            shared += list(network.context.parameters()) if place == "after" else []
            embeddings = embedded(network, turned, "before")
            context = network.context(embeddings)
            angle = circle_loss(angles, network.decoder(context)).mean()
            chosen = context if place == "after" else embeddings
            shift = prior_loss(angles, prior(embedded(network, upright, place), chosen)).mean()
            one, two = (
                torch.cat([g.flatten() for g in torch.autograd.grad(part, shared, retain_graph=True)])
                for part in (angle, shift)
            )
            found[place] = {
                "cosine": F.cosine_similarity(one, two, dim=0, eps=1e-20).item(),
                "ratio": (two.norm() / one.norm().clamp_min(1e-20)).item(),
                "prior_loss": shift.item(),
            }
    return {place: {k: float(f"{v:.4g}") for k, v in one.items()} for place, one in found.items()}


def _batch(images: ImageSet, device: torch.device) -> tuple[Tensor, Tensor]:
    angles = draw_angles("evaluation", 0, 0, len(images), group="cyclic", num_beams=BEAMS)
    rows = [k * len(images) // min(BATCH, len(images)) for k in range(min(BATCH, len(images)))]
    return images.images[rows].to(device), angles[rows].to(device)


def _bic(model: Network) -> BIC:
    if not isinstance(model, BIC):
        raise TypeError(f"Expected the paper's network; got {type(model).__name__}.")
    return model


@torch.inference_mode()
def shifts_found(trained: Trained) -> dict[str, float]:
    """How often the strongest diagonal of the similarities is the true shift; chance is 1/|B|."""
    model, views = _bic(trained.model), trained.fit.views
    prior = ToeplitzPrior(BEAMS).to(trained.device)
    images = trained.held_out.images
    angles = draw_angles("evaluation", 0, 0, len(images), group="cyclic", num_beams=BEAMS)
    right = dict.fromkeys(PLACES, 0)
    for start in range(0, len(images), BATCH):
        parents = images[start : start + BATCH].to(trained.device)
        turns = angles[start : start + BATCH].to(trained.device)
        upright, turned = views.upright(parents), views.render(parents, turns)
        true = torch.round(turns * (BEAMS / (2 * torch.pi))).long() % BEAMS
        for place in PLACES:
            logs = prior(embedded(model, upright, place), embedded(model, turned, place))
            right[place] += int((logs.argmax(dim=-1) == true).sum())
    return {place: count / len(images) for place, count in right.items()}


def measure(trained: Trained, turns: int = fine_orbit.TURNS, objects: int = OBJECTS) -> Record:
    lines = [json.loads(line) for line in trained.fit.folder.metrics.open(encoding="utf-8")]
    along = [{"step": one["step"], **one["gradients"]} for one in lines if "gradients" in one]
    return {
        **errors(trained),
        "shifts": shifts_found(trained),
        "gradients": gradients(trained.model, trained.fit, trained.held_out),
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
