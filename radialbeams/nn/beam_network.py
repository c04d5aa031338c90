"""The configuration that networks on beams share, including how beams are sampled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from radialbeams.nn.beams import BresenhamBeams, PolarBeams
from radialbeams.nn.encoder import SHORTEST_BEAM
from radialbeams.nn.network import NetworkConfig

Sampler = Literal["bresenham", "polar"]
MOST_PIXELS = 2**24  # of all beams of a view together


@dataclass(frozen=True)
class BeamConfig(NetworkConfig):
    """The fields are the paper's symbols; the defaults are its settings for COIL-100."""

    num_beams: int = 32  # |B|
    beam_length: int = 64  # D
    epsilon: int = 1  # ε: a beam is 2ε + 1 pixels wide
    sampler: Sampler = "bresenham"

    LIMITS: ClassVar[Mapping[str, tuple[int, int]]] = {
        **NetworkConfig.LIMITS,
        "num_beams": (3, 4096),
        "beam_length": (SHORTEST_BEAM, 4096),
        "epsilon": (0, 64),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("sampler", self.sampler, get_args(Sampler))
        if self.num_beams * self.beam_length * self.thickness > MOST_PIXELS:
            raise ValueError(
                f"The beams of a view must have at most {MOST_PIXELS:,} pixels together; num_beams,"
                " beam_length and epsilon give more."
            )

    @property
    def num_bins(self) -> int:
        """The number of bins of the posterior, one for each beam."""
        return self.num_beams

    @property
    def thickness(self) -> int:
        return 2 * self.epsilon + 1

    def make_sampler(self) -> BresenhamBeams | PolarBeams:
        sampler = PolarBeams if self.sampler == "polar" else BresenhamBeams
        return sampler(self.num_beams, self.beam_length, self.epsilon, self.view_size)


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}.")
