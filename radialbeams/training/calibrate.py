"""Calibration: two numbers, so that a confidence of 0.9 is right nine times in ten.

The temperature says how much too sure the logits are; the spread, in degrees, how far a beam's own
answer may be off.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from radialbeams.nn.angles import angular_error
from radialbeams.nn.bic import RingBIC
from radialbeams.nn.ring import WITHIN, answer, confidence, posterior
from radialbeams.training.data import ImageSet
from radialbeams.training.views import Views, draw_angles

# From 1 up: below it, a model that is nearly always right would call itself certain of everything
# and could no longer tell which pictures it is least sure of.
TEMPERATURES = torch.logspace(0, 0.7, 29).tolist()  # to 5
SPREADS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0)
SEED = 1000  # of angles that no evaluation draws


@torch.inference_mode()
def calibrate(
    model: RingBIC, images: ImageSet, views: Views, *, seeds: int = 3
) -> dict[str, float]:
    """Temperature and spread whose confidences best foretell which answers are within 10°.

    By the log-loss, which is least where the confidences are the true chances. The images must
    be held out, and others than those on which calibration is then measured.
    """
    logits, offsets, angles = _outputs(model, images, views, seeds)
    right = angular_error(answer(posterior(logits, offsets)), angles) <= WITHIN
    losses = {
        (temperature, spread): _log_loss(logits, offsets, right, temperature, spread)
        for temperature in TEMPERATURES
        for spread in SPREADS
    }
    temperature, spread = min(losses, key=lambda pair: losses[pair])
    return {"temperature": round(temperature, 4), "spread": spread}


def _outputs(
    model: RingBIC, images: ImageSet, views: Views, seeds: int
) -> tuple[Tensor, Tensor, Tensor]:
    found: list[tuple[Tensor, Tensor]] = []
    drawn = []
    for seed in range(seeds):
        angles = draw_angles("evaluation", SEED + seed, 0, len(images))
        drawn.append(angles)
        for start in range(0, len(images), 128):
            part = slice(start, start + 128)
            found.append(model(views.render(images.images[part], angles[part])))
    logits, offsets = (torch.cat(parts) for parts in zip(*found, strict=True))
    return logits, offsets, torch.cat(drawn)


def _log_loss(
    logits: Tensor, offsets: Tensor, right: Tensor, temperature: float, spread: float
) -> float:
    sure = confidence(posterior(logits, offsets, temperature), math.radians(spread))
    sure = sure.clamp(1e-6, 1 - 1e-6)
    return -torch.where(right, sure.log(), (1 - sure).log()).mean().item()


def halves(images: ImageSet, in_first: Callable[[str], bool]) -> tuple[ImageSet, ImageSet]:
    """Two sets that share no key."""
    first = [i for i, key in enumerate(images.keys) if in_first(key)]
    second = [i for i, key in enumerate(images.keys) if not in_first(key)]
    return images.select(first), images.select(second)
