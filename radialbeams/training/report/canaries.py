"""How much of the angle a run's views give away: measured, or stored for the same geometry."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from radialbeams.cards import ViewProtocol
from radialbeams.training.leaks import CHANCE, FULL, QUICK, CanaryEffort, measure_leak
from radialbeams.training.views import Views


@dataclass(frozen=True)
class Canary:
    """ρ₄ of a network trained on rotated noise: 0 is chance, 1 gives the angle away modulo 90°."""

    rho4: float
    low: float  # 95 % interval
    high: float
    network: str
    parent_size: int  # pixels that it was measured with
    views: int  # seen in training
    here: bool  # measured with the views of this run

    @property
    def clean(self) -> bool:
        return abs(self.rho4) <= CHANCE


def _stored(parent: int, network: str, rho4: float, low: float, high: float) -> Canary:
    return Canary(rho4, low, high, network, parent, 600_064, here=False)


# From results/leaks: white noise, on a GPU, the canary of the two with the larger ρ₄.
LEAKFREE = (
    _stored(28, "ring", 0.0116, -0.0105, 0.0338),
    _stored(32, "ring", -0.0107, -0.0329, 0.0126),
    _stored(128, "cnn", -0.0095, -0.0297, 0.0123),
)
LEAKFREE_192 = _stored(192, "cnn", -0.0127, -0.0357, 0.0092)  # that of `general`
PAPER = _stored(128, "ring", 1.0, 1.0, 1.0)


def on_file(protocol: ViewProtocol, view_size: int) -> Canary | None:
    """The stored canary for the nearest geometry of the same protocol; None if there is none."""
    if protocol.name == "paper":
        return PAPER
    parent = protocol.parent_size or view_size
    if protocol.sigma is None:
        return min(LEAKFREE, key=lambda canary: abs(math.log(canary.parent_size / parent)))
    same = (parent, view_size, protocol.sigma, protocol.reach) == (192, 192, 1.1, 0.95)
    return LEAKFREE_192 if same else None


def measure_here(views: Views, parent_size: int, device: torch.device) -> Canary:
    """A canary on the views of this run: about half a minute on a GPU, a minute or two on a CPU.

    On a CPU it is small and sees few views, so that it finds strong leaks only.
    """
    effort: CanaryEffort = FULL if device.type == "cuda" else QUICK
    settings: CanaryEffort = {**effort, "parent": parent_size}
    leak = measure_leak(views.render, "cnn", "white", **settings, device=device)
    return Canary(
        leak.rho4, leak.rho4_low, leak.rho4_high, "cnn", parent_size, leak.views, here=True
    )
