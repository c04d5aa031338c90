"""The posterior over the circle in torch: read, and trained.

`radialbeams.posterior` (numpy) is the definition of what is read; a test holds the two together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from radialbeams import posterior as definition
from radialbeams.nn.angles import TURN, circle_loss, from_unit, positive, to_unit, wrap
from radialbeams.nn.losses import Losses, LossInputs, RingLoss
from radialbeams.nn.network import Network

WITHIN = math.radians(definition.WITHIN)  # confidence is the posterior mass this close
UPRIGHT = math.radians(definition.UPRIGHT)  # an image turned by less counts as upright
OFFSET_REACH = 1.5  # bins that an offset can reach to either side
SHORT = 1e-6  # a mean direction shorter than this points nowhere


class Posterior(NamedTuple):
    """Of each view: (N, bins) log-probabilities, and the angle of each bin."""

    log_probabilities: Tensor
    angles: Tensor  # radians: the bin's own angle and its offset


def posterior(logits: Tensor, offsets: Tensor, temperature: float = 1.0) -> Posterior:
    """Two of (N, |B|) → log-probabilities and the angle that each beam stands for."""
    beams = torch.arange(logits.shape[-1], device=logits.device, dtype=offsets.dtype)
    angles = (beams + offsets) * (TURN / logits.shape[-1])
    return Posterior((logits / temperature).log_softmax(-1), angles)


def answer(read: Posterior) -> Tensor:
    """(N,) radians in [0, 2π): the likeliest beam, moved by its offset."""
    best = read.log_probabilities.argmax(-1, keepdim=True)
    return positive(read.angles.gather(-1, best).squeeze(-1))


def confidence(read: Posterior, spread: float = 0.0) -> Tensor:
    """(N,) in [0, 1]: the posterior mass within ±10° of the answer."""
    return mass_near(read, answer(read), WITHIN, spread)


def mass_near(read: Posterior, angles: Tensor, within: float, spread: float = 0.0) -> Tensor:
    """(N,) in [0, 1]: the posterior mass so near to the angles (N,), all in radians.

    `spread` is how far a beam's own answer may be off: each beam is then not a point but a
    logistic bump of that width. On objects that a model has not seen it matters.
    """
    away = wrap(read.angles - angles[:, None]).abs()
    if spread:
        near = torch.sigmoid((within - away) / spread) - torch.sigmoid((-within - away) / spread)
    else:
        near = (away <= within).float()
    return (read.log_probabilities.exp() * near).sum(-1)


def symmetry(read: Posterior, threshold: float = definition.STRONG) -> Tensor:
    """(N,) integers: 1 = one clear up, k = the same every 360°/k, 0 = no up.

    The k-th circular moment is the length of the mean of e^{ikθ}; a k-fold posterior has its
    first strong one at k. The smallest strong k wins, and a flat posterior has none.
    """
    mass = read.log_probabilities.exp()
    moments = torch.stack(
        [
            (mass[..., None] * to_unit(k * read.angles)).sum(-2).norm(dim=-1)
            for k in range(1, definition.MOMENTS + 1)
        ],
        dim=-1,
    )  # (N, MOMENTS)
    strong = moments >= threshold
    return torch.where(strong.any(-1), strong.float().argmax(-1) + 1, 0)


DEFAULT_PARTS = RingLoss()


def ring_loss(
    angles: Tensor, logits: Tensor, offsets: Tensor, parts: RingLoss = DEFAULT_PARTS
) -> tuple[Tensor, Tensor]:
    """Radians (N,) against logits and offsets: the loss to minimise, and the plain circle loss.

    Cross-entropy against a von Mises target, the paper's circle loss of the posterior's mean, and
    1 − cos of what the beams near the truth answer.
    """
    read = posterior(logits, offsets)
    step = TURN / logits.shape[-1]
    beams = torch.arange(logits.shape[-1], device=logits.device) * step
    target = (torch.cos(beams - angles[:, None]) / (parts.width * step) ** 2).softmax(-1)
    crossed = -(target * read.log_probabilities).sum(-1)
    mean = (read.log_probabilities.exp()[..., None] * to_unit(read.angles)).sum(-2)
    circle = circle_loss(angles, mean)
    missed = (target * (1 - torch.cos(read.angles - angles[:, None]))).sum(-1)
    loss = crossed + parts.circle * circle + parts.offset * missed
    return loss, circle_loss(angles, to_unit(answer(read)))


def mean_direction(read: Posterior) -> Tensor:
    """(N,) radians: where the mean of the posterior points, which moves with all of its mass."""
    mean = (read.log_probabilities.exp()[..., None] * to_unit(read.angles)).sum(-2)  # (N, 2)
    # A mean of no length points nowhere, and its gradient would not be a number.
    short = (mean.detach().norm(dim=-1, keepdim=True) < SHORT).to(mean.dtype)  # (N, 1)
    return from_unit(mean + SHORT * torch.cat((short, torch.zeros_like(short)), dim=-1))


def posterior_loss(network: Network, given: LossInputs) -> tuple[Tensor, Losses]:
    """The loss of every network that ends in a posterior, as a row of the table has it."""
    logits, offsets = network(given.views)  # (N, bins) each
    loss, circle = ring_loss(given.angles, logits, offsets, given.settings)
    return loss.mean(), Losses(circle.mean().detach(), circle.new_zeros(()))
