"""The ring on sampled beams: a network whose posterior rotates with the image by construction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from radialbeams.nn.beam_network import BeamConfig
from radialbeams.nn.network import Network
from radialbeams.nn.posterior import answer, posterior
from radialbeams.nn.ring import HEADS, Ring
from radialbeams.nn.ring_fast import with_fast_forms


@dataclass(frozen=True)
class RingConfig(BeamConfig):
    """The settings of the ring."""

    architecture: Literal["ring"] = "ring"
    stem: int = 48  # channels of the first convolution
    stem_stride: int = 4
    stages: tuple[int, ...] = (64, 96)  # channels
    depth: int = 1  # blocks per stage
    width: int = 128  # channels of the ring blocks
    dilations: tuple[int, ...] = (1, 2, 4, 8)  # one ring block each
    attention: int = 0  # number of attention blocks after the dilated ones
    drop: float = 0.0  # rate of stochastic depth

    LIMITS: ClassVar[Mapping[str, tuple[int, int]]] = {
        **BeamConfig.LIMITS,
        "stem": (1, 4096),
        "stem_stride": (1, 4096),
        "depth": (1, 64),
        "width": (1, 4096),
        "attention": (0, 64),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("stages", "dilations"):
            sizes = getattr(self, name)
            if len(sizes) > 64 or any(not 1 <= size <= 4096 for size in sizes):
                raise ValueError(f"{name} must be at most 64 numbers from 1 to 4096.")
        if self.attention and self.width % HEADS:
            raise ValueError(
                f"width must be a multiple of {HEADS}, the attention heads; got {self.width}."
            )
        if self.stem_stride > self.beam_length:
            raise ValueError(
                f"stem_stride must be at most beam_length, {self.beam_length}; got "
                f"{self.stem_stride}."
            )
        if not 0 <= self.drop < 1:
            raise ValueError(f"drop must lie in [0, 1); got {self.drop}.")


class RingBIC(Network):
    """Views (N, C, S, S) in [0, 1] → logits and offsets, (N, |B|) each, offsets in beam steps."""

    outputs = ("logits", "offsets")
    full_precision = ("beams",)
    config: RingConfig

    def __init__(self, config: RingConfig) -> None:
        super().__init__()
        self.config = c = config
        self.beams = c.make_sampler()
        ring = Ring(
            c.channels * c.thickness,
            c.beam_length,
            stem=c.stem,
            stem_stride=c.stem_stride,
            stages=c.stages,
            depth=c.depth,
            width=c.width,
            dilations=c.dilations,
            num_beams=c.num_beams,
            attention=c.attention,
            drop=c.drop,
        )
        self.ring = with_fast_forms(ring)

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        beams = self.beams(views)  # (N, |B|, C, 2ε+1, D)
        logits, offsets = self.ring(beams)  # (N, |B|) each
        return logits, offsets

    def angles(self, views: Tensor) -> Tensor:
        """(N, C, S, S) → (N,) radians in [0, 2π)."""
        return answer(posterior(*self(views)))
