"""The posterior over the circle in torch: how it is interpreted, and its loss.

`radialbeams.posterior` (numpy) is the definition; a test checks that this file agrees with it.
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

WITHIN = math.radians(definition.WITHIN)  # confidence is the mass this close to the estimate
UPRIGHT = math.radians(definition.UPRIGHT)  # an image turned by less counts as upright
OFFSET_REACH = 1.5  # the largest offset, in bins to either side
SHORT = 1e-6  # a mean vector shorter than this has no direction


class Posterior(NamedTuple):
    """Log-probabilities (N, bins), and the angle of each bin (N, bins)."""

    log_probabilities: Tensor
    angles: Tensor  # radians: the bin's own angle and its offset


def posterior(logits: Tensor, offsets: Tensor, temperature: float = 1.0) -> Posterior:
    """Two of (N, bins) → the log-probability and the angle of each bin."""
    beams = torch.arange(logits.shape[-1], device=logits.device, dtype=offsets.dtype)
    angles = (beams + offsets) * (TURN / logits.shape[-1])
    return Posterior((logits / temperature).log_softmax(-1), angles)


def answer(read: Posterior) -> Tensor:
    """(N,) radians in [0, 2π): the angle of the most probable bin, with its offset."""
    best = read.log_probabilities.argmax(-1, keepdim=True)
    return positive(read.angles.gather(-1, best).squeeze(-1))


def of_quarter_turned_views(
    logits: Tensor, offsets: Tensor, temperature: float = 1.0
) -> tuple[Tensor, Posterior]:
    """The angles and posteriors of N images from four views each, at successive quarter turns.

    Logits and offsets are (N, 4, bins). The posterior (N, 4·bins) is the average of the four,
    rotated back. Of the four estimates, the one with the most mass nearby is taken, and refined to
    the mean of that mass, as in `radialbeams.posterior.read_posteriors`.
    """
    views = posterior(logits, offsets, temperature)  # (N, 4, bins) each
    quarters = torch.arange(4, device=logits.device) * (TURN / 4)
    angles = views.angles - quarters[:, None]
    best = views.log_probabilities.argmax(-1, keepdim=True)
    candidates = angles.gather(-1, best)  # (N, 4, 1)
    joined = Posterior(views.log_probabilities.flatten(1) - math.log(4), angles.flatten(1))
    away = wrap(joined.angles[:, None] - candidates)  # (N, 4, 4·bins)
    near = (away.abs() <= WITHIN) * joined.log_probabilities.exp()[:, None]
    first = near.sum(-1).argmax(-1)[:, None, None]  # (N, 1, 1)
    lead = candidates.gather(1, first)[:, 0, 0]
    weight, apart = (x.gather(1, first.expand(-1, -1, x.shape[-1]))[:, 0] for x in (near, away))
    return positive(lead + (weight * apart).sum(-1) / weight.sum(-1)), joined


def confidence(read: Posterior, spread: float = 0.0) -> Tensor:
    """(N,) in [0, 1]: the posterior mass within ±10° of the estimate."""
    return mass_near(read, answer(read), WITHIN, spread)


def mass_near(read: Posterior, angles: Tensor, within: float, spread: float = 0.0) -> Tensor:
    """(N,) in [0, 1]: the posterior mass `within` radians of the angles (N,).

    `spread` is the uncertainty of a bin's own angle, in radians: each bin is then a logistic bump
    of that width instead of a point. It matters for objects that a model has not seen.
    """
    away = wrap(read.angles - angles[:, None]).abs()
    if spread:
        near = torch.sigmoid((within - away) / spread) - torch.sigmoid((-within - away) / spread)
    else:
        near = (away <= within).float()
    return (read.log_probabilities.exp() * near).sum(-1)


def symmetry(read: Posterior, threshold: float = definition.STRONG) -> Tensor:
    """(N,) integers: 1 = one clear upright direction, k = the same every 360°/k, 0 = none.

    The k-th circular moment is the length of the mean of e^{ikθ}. The first strong moment of a
    k-fold posterior is the k-th, so the smallest strong k is returned; a flat posterior has none.
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
    """For angles (N,) in radians, logits and offsets: the loss to minimise, and the circle loss.

    The loss is the sum of the cross-entropy against a von Mises target, the paper's circle loss of
    the posterior's mean, and 1 − cos of the error of the bins near the true angle.
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
    """(N,) radians: the direction of the posterior's mean vector; differentiable."""
    mean = (read.log_probabilities.exp()[..., None] * to_unit(read.angles)).sum(-2)  # (N, 2)
    # A zero vector has no direction, and its gradient would be NaN.
    short = (mean.detach().norm(dim=-1, keepdim=True) < SHORT).to(mean.dtype)  # (N, 1)
    return from_unit(mean + SHORT * torch.cat((short, torch.zeros_like(short)), dim=-1))


def posterior_loss(network: Network, given: LossInputs) -> tuple[Tensor, Losses]:
    """The loss of every network whose output is a posterior."""
    logits, offsets = network(given.views)  # (N, bins) each
    loss, circle = ring_loss(given.angles, logits, offsets, given.settings)
    return loss.mean(), Losses(circle.mean().detach(), circle.new_zeros(()))
