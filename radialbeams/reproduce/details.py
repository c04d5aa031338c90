"""Small questions: LeakyReLU against ReLU, and CIFAR-10, for which the paper only has a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch.nn.functional as F
from torch import Tensor, nn

from radialbeams.nn.architectures import Network, build
from radialbeams.nn.bic import BIC, BICConfig
from radialbeams.nn.context import WheelContext
from radialbeams.nn.ring_network import RingConfig
from radialbeams.nn.rotation import largest_view
from radialbeams.reproduce import paper
from radialbeams.reproduce.prior_weight import HELD_OUT, IMAGES
from radialbeams.reproduce.settings import Settings
from radialbeams.reproduce.trainings import Training, errors
from radialbeams.training.data import DataNotFound, ImageSet, place_of
from radialbeams.training.parts import Parts
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import Protocol

if TYPE_CHECKING:
    pass

NAME = "details"
SEEDS = 3
STEPS = 2000
CIFAR_IMAGES, CIFAR_HELD_OUT = 5000, 1000


@dataclass(frozen=True)
class Row:
    """One kind of training; its runs differ only in the seed."""

    name: str
    title: str
    data: str
    protocol: Protocol
    relu: bool = False
    ring: bool = False


ROWS = (
    Row("leaky-paper", "LeakyReLU, paper's views", "coil100", "paper"),
    Row("relu-paper", "ReLU, paper's views", "coil100", "paper", relu=True),
    Row("leaky-leakfree", "LeakyReLU, leak-free views", "coil100", "leakfree"),
    Row("relu-leakfree", "ReLU, leak-free views", "coil100", "leakfree", relu=True),
    Row("cifar-bic-paper", "the paper's network, paper's views", "cifar10", "paper"),
    Row("cifar-bic-leakfree", "the paper's network, leak-free views", "cifar10", "leakfree"),
    Row("cifar-ring-leakfree", "the ring, leak-free views", "cifar10", "leakfree", ring=True),
)


class ReluContext(WheelContext):
    """The context encoder with ReLU for LeakyReLU."""

    def messages(self, embeddings: Tensor) -> tuple[Tensor, Tensor]:
        nodes = F.pad(embeddings, (0, 0, 0, 1))  # (N, |B|+1, L): the hub starts at 0
        for weight in self.layers:
            nodes = F.relu(weight(self.edges @ nodes))
        return nodes[:, :-1], nodes[:, -1:]


def relu_network(recipe: Recipe, images: ImageSet) -> Network:
    """The same network with ReLU everywhere; its first weights are equal."""
    model = build(recipe.model)
    if not isinstance(model, BIC):
        raise TypeError(f"Expected the paper's network; got {type(model).__name__}.")
    for part in model.modules():
        if isinstance(part, nn.LeakyReLU):
            part.negative_slope = 0.0
    c = model.config
    context = ReluContext(c.num_beams, c.latent, c.context_layers, c.edge_factor, c.hub)
    context.load_state_dict(model.context.state_dict())
    model.context = context
    return model


def recipe(row: Row, seed: int, settings: Settings) -> Recipe:
    small = row.data == "cifar10"
    size = 32 if small else settings.pick(quick=64, full=128)
    latent = settings.pick(quick=32, full=128)
    network: Any = paper.network(row.protocol, size, settings, latent=32) if not small else None
    if small and row.protocol == "paper":
        network = BICConfig.for_images(size, latent=latent)
    elif small:
        # Beams of the largest leak-free view are too short for the encoder at one sample a pixel.
        shape = {"view_size": largest_view(size), "beam_length": 14, "sampler": "polar"}
        network = BICConfig(**shape, epsilon=0, latent=latent)
        if row.ring:
            network = RingConfig(**shape, num_beams=48, epsilon=0, stem_stride=2)
    found = Recipe(
        row.data,
        network,
        size,
        protocol=row.protocol,
        batch=settings.pick(quick=32, full=128),
        steps=settings.pick(quick=40, full=STEPS),
        seed=seed,
    )
    found = paper.fitting(found, settings)
    return replace(found, learning_rate=3e-3, weight_decay=0.05) if row.ring else found


def trainings(settings: Settings) -> list[Training]:
    """All rows of the first seed, then all of the second; CIFAR-10 only where it is."""
    cifar = _has_cifar(settings)
    there = [row for row in ROWS if row.data == "coil100" or cifar]
    return [
        Training(
            f"{row.name}-seed{seed}",
            recipe(row, seed, settings),
            {"row": row.name},
            images=settings.pick(quick=300, full=IMAGES if row.data == "coil100" else CIFAR_IMAGES),
            held_out=settings.pick(
                quick=60, full=HELD_OUT if row.data == "coil100" else CIFAR_HELD_OUT
            ),
            measure=errors,
            parts=Parts(network=relu_network) if row.relu else Parts(),
        )
        for seed in settings.seeds_of(quick=1, full=SEEDS)
        for row in there
    ]


def _has_cifar(settings: Settings) -> bool:
    """Whether it can be trained on, or was."""
    if any(settings.runs(NAME).glob("cifar-*.json")):
        return True
    try:
        place_of("cifar10", settings.data)
    except DataNotFound:
        return False
    return True
