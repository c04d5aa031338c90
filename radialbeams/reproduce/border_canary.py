"""A canary for the border: the paper's network trained on white noise, which has no direction.

Whatever it still learns about the angle comes from the padding around the noise.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from radialbeams.nn.angles import circle_loss
from radialbeams.nn.architectures import Network
from radialbeams.nn.beams import Length, named_length
from radialbeams.nn.losses import Losses, LossInputs
from radialbeams.reproduce import paper
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.reproduce.trainings import PlannedTraining, Trained
from radialbeams.stored import JsonDict
from radialbeams.training.data import ImageSet
from radialbeams.training.leaks import rho
from radialbeams.training.noise import NoiseSource
from radialbeams.training.parts import Parts
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import Protocol, draw_angles

TEST_VIEWS = 4096


def canary_loss(network: Network, inputs: LossInputs) -> tuple[Tensor, Losses]:
    """The circle loss plus a term for the angle modulo 90°, which is all that a square reveals.

    The circle loss alone has no gradient there: four equally likely answers cancel out.
    """
    unit = network(inputs.views).float()
    circle = circle_loss(inputs.angles, unit).mean()
    fourfold = circle_loss(4 * inputs.angles, squared(squared(unit))).mean()
    return circle + 5 * fourfold, Losses(circle.detach(), circle.new_zeros(()))


def squared(unit: Tensor) -> Tensor:
    """(…, 2) → (…, 2): the unit vector of twice the angle."""
    re, im = unit.unbind(-1)
    return torch.stack((re * re - im * im, 2 * re * im), dim=-1)


def noise_like(recipe: Recipe, images: ImageSet) -> ImageSet:
    """White noise in place of the images; it has no upright direction."""
    generator = torch.Generator().manual_seed(recipe.seed)
    noise = NoiseSource("white", recipe.parent_size, generator)(len(images))
    return replace(images, images=noise).upright()


CANARY = Parts(images=noise_like, loss=lambda recipe, images, device: canary_loss)


@torch.inference_mode()
def read_off_noise(trained: Trained) -> JsonDict:
    """ρ₄ and ρ₁ on unseen noise: 0 is chance, 1 reads the angle exactly."""
    size, batch = trained.recipe.parent_size, 256
    noise = NoiseSource("white", size, torch.Generator().manual_seed(trained.recipe.seed + 1))
    angles = draw_angles("evaluation", 1, 0, TEST_VIEWS)
    residuals = []
    for start in range(0, TEST_VIEWS, batch):
        batch_angles = angles[start : start + batch]
        parents = noise(len(batch_angles)).to(trained.device)
        estimates = trained.model.angles(trained.fit.views.render(parents, batch_angles)).cpu()
        residuals.append(estimates - batch_angles)
    errors = torch.cat(residuals).double().numpy()
    return {"rho4": rho(errors, 4), "rho1": rho(errors, 1), "test_views": TEST_VIEWS}


# The three lengths, and leak-free views as a control.
CANARIES: tuple[tuple[Protocol, Length], ...] = (
    *(("paper", length) for length in ("C", "B", "A")),
    ("leakfree", "B"),
)


def canary(kind: tuple[Protocol, Length], settings: ReproduceSettings) -> PlannedTraining:
    protocol, length = kind
    size = settings.pick(quick=64, full=128)
    overrides = {"beam_length": named_length(length, size)} if protocol == "paper" else {}
    recipe = Recipe(
        "coil100",
        paper.network(protocol, size, settings, **overrides),
        size,
        protocol=protocol,
        **paper.effort(settings, quick_steps=150),
    )
    return PlannedTraining(
        f"canary-{protocol}-{length}",
        paper.fitting(recipe, settings),  # so that it learns whatever can be read
        {"kind": f"canary-{protocol}-{length}"},
        images=settings.pick(quick=400, full=None),
        held_out=100,  # unused: the test is on noise
        measure=read_off_noise,
        parts=CANARY,
    )
