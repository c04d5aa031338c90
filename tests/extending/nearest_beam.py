"""A decoder as someone would add it: a file of its own, and `ROW` for the table of networks.

Every beam is weighed by its brightness alone, so that it turns with the image.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from radialbeams.cards import JsonObject
from radialbeams.nn.architectures import Architecture
from radialbeams.nn.beam_network import BeamConfig
from radialbeams.nn.losses import Losses, LossInputs
from radialbeams.nn.network import Network
from radialbeams.nn.posterior import answer, posterior, ring_loss
from radialbeams.nn.rotation import largest_view


@dataclass(frozen=True)
class NearestBeamConfig(BeamConfig):
    architecture: Literal["nearest-beam"] = "nearest-beam"
    hidden: int = 8


class NearestBeam(Network):
    outputs = ("logits", "offsets")
    full_precision = ("beams",)
    config: NearestBeamConfig

    def __init__(self, config: NearestBeamConfig) -> None:
        super().__init__()
        self.config = c = config
        self.beams = c.make_sampler()
        pixels = c.channels * c.thickness * c.beam_length
        self.head = nn.Sequential(nn.Linear(pixels, c.hidden), nn.ReLU(), nn.Linear(c.hidden, 2))

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        beams = self.beams(views).flatten(2)  # (N, |B|, C·(2ε+1)·D)
        logits, offsets = self.head(beams).unbind(-1)  # (N, |B|) each
        return logits, torch.tanh(offsets)

    def angles(self, views: Tensor) -> Tensor:
        return answer(posterior(*self(views)))


def loss(network: NearestBeam, given: LossInputs) -> tuple[Tensor, Losses]:
    """Its own, so that a test sees that the row's loss is the one that is minimised."""
    total, circle = ring_loss(given.angles, *network(given.views))
    return 2 * total.mean(), Losses(circle.mean().detach(), circle.new_zeros(()))


def defaults(parent_size: int) -> JsonObject:
    size = largest_view(parent_size)
    length = max(9, size // 2)
    config = NearestBeamConfig(
        view_size=size, num_beams=12, beam_length=length, epsilon=0, sampler="polar"
    )
    return {"protocol": "leakfree", "learning_rate": 1e-2, "model": config.to_dict()}


ROW = Architecture(NearestBeamConfig, NearestBeam, loss, "posterior", defaults)
