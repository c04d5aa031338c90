"""BIC, wired: the paper's network, and the ring on the same beams. Each part has its own file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from torch import Tensor, nn

from radialbeams.nn.angles import from_unit
from radialbeams.nn.beams import BresenhamBeams, PolarBeams, margin
from radialbeams.nn.context import HUBS, Hub, WheelContext
from radialbeams.nn.decoder import LSTMDecoder
from radialbeams.nn.encoder import LEAK, SHORTEST_BEAM, BeamEncoder
from radialbeams.nn.ring import HEADS, Ring, answer, posterior
from radialbeams.stored import check_fields

Sampler = Literal["bresenham", "polar"]
Decoder = Literal["lstm", "ring"]


@dataclass(frozen=True)
class BICConfig:
    """The paper's symbols by name; the defaults are its COIL-100 setting."""

    view_size: int = 182  # W + 2δ: the side of the padded, rotated image that the model sees
    channels: int = 3  # C
    num_beams: int = 32  # |B|
    beam_length: int = 64  # D
    epsilon: int = 1  # ε: a beam is 2ε + 1 pixels wide
    latent: int = 128  # L
    sampler: Sampler = "bresenham"
    decoder: Decoder = "lstm"
    # The paper's decoder
    context_layers: int = 3  # 0 leaves the wheel graph out
    edge_factor: float = 0.5  # λ
    hub: Hub = "mean"
    lstm_layers: int = 3
    # The ring
    ring_stem: int = 48
    ring_stem_stride: int = 4
    ring_stages: tuple[int, ...] = (64, 96)
    ring_depth: int = 1  # blocks a stage
    ring_width: int = 128
    ring_dilations: tuple[int, ...] = (1, 2, 4, 8)
    ring_attention: int = 0  # blocks of attention after the dilated ones
    ring_drop: float = 0.0  # share of views that a block's branch is left out of, in training

    def __post_init__(self) -> None:
        _one_of("sampler", self.sampler, get_args(Sampler))
        _one_of("decoder", self.decoder, get_args(Decoder))
        _one_of("hub", self.hub, HUBS)
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}; got {getattr(self, name)}.")
        for name, most in _MOST.items():
            if getattr(self, name) > most:
                raise ValueError(f"{name} must be at most {most}; got {getattr(self, name)}.")
        for name in ("ring_stages", "ring_dilations"):
            sizes = getattr(self, name)
            if len(sizes) > 64 or any(not 1 <= size <= 4096 for size in sizes):
                raise ValueError(f"{name} must be at most 64 numbers from 1 to 4096.")
        if self.num_beams * self.beam_length * self.thickness > MOST_PIXELS:
            raise ValueError(
                f"The beams of a view must have at most {MOST_PIXELS:,} pixels together; num_beams,"
                " beam_length and epsilon give more."
            )
        if self.latent % 8:
            raise ValueError(
                f"latent must be a multiple of 8, since the first layer has L/8 maps; "
                f"got {self.latent}. Use {max(8, round(self.latent / 8) * 8)}."
            )
        if self.ring_attention and self.ring_width % HEADS:
            raise ValueError(
                f"ring_width must be a multiple of {HEADS}, the heads of attention; got "
                f"{self.ring_width}."
            )
        if self.ring_stem_stride > self.beam_length:
            raise ValueError(
                f"ring_stem_stride must be at most beam_length, {self.beam_length}; got "
                f"{self.ring_stem_stride}."
            )
        if not 0 <= self.ring_drop < 1:
            raise ValueError(f"ring_drop must lie in [0, 1); got {self.ring_drop}.")
        if not 0 < self.edge_factor <= 1:
            raise ValueError(f"edge_factor λ must lie in (0, 1]; got {self.edge_factor}.")

    @property
    def num_bins(self) -> int:
        """Of the posterior: one for each beam."""
        return self.num_beams

    @property
    def thickness(self) -> int:
        return 2 * self.epsilon + 1

    @classmethod
    def for_images(cls, size: int, **changes: Any) -> BICConfig:
        """For W × W images under the paper's protocol: padded by δ, beams of D = W/2."""
        return cls(**{"view_size": size + 2 * margin(size), "beam_length": size // 2, **changes})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BICConfig:
        check_fields("a model configuration", values, cls)
        plain: dict[str, Any] = dict(values)
        for name in ("ring_stages", "ring_dilations"):  # JSON knows no tuples
            if name in plain:
                plain[name] = tuple(plain[name])
        return cls(**plain)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, which knows no tuples."""
        values = asdict(self)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


_LEAST = {
    "channels": 1,
    "num_beams": 3,
    "beam_length": SHORTEST_BEAM,
    "epsilon": 0,
    "latent": 8,
    "context_layers": 0,
    "lstm_layers": 1,
    "ring_stem": 1,
    "ring_stem_stride": 1,
    "ring_depth": 1,
    "ring_width": 1,
    "ring_attention": 0,
}


# Far above any that is of use: what a damaged or hostile file asks for must fit into memory.
_MOST = {
    "view_size": 4096,
    "channels": 64,
    "num_beams": 4096,
    "beam_length": 4096,
    "epsilon": 64,
    "latent": 8192,
    "context_layers": 64,
    "lstm_layers": 64,
    "ring_stem": 4096,
    "ring_depth": 64,
    "ring_width": 4096,
    "ring_attention": 64,
}
MOST_PIXELS = 2**24


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}.")


def _sampler(c: BICConfig) -> BresenhamBeams | PolarBeams:
    sampler = PolarBeams if c.sampler == "polar" else BresenhamBeams
    return sampler(c.num_beams, c.beam_length, c.epsilon, c.view_size)


class BIC(nn.Module):
    """The paper's network: views (N, C, S, S) in [0, 1] → unit vectors (N, 2)."""

    outputs = ("unit",)

    def __init__(self, config: BICConfig) -> None:
        super().__init__()
        self.config = c = config
        self.beams = _sampler(c)
        self.encoder = BeamEncoder(c.channels, c.beam_length, c.epsilon, c.latent)
        self.context = (
            WheelContext(c.num_beams, c.latent, c.context_layers, c.edge_factor, c.hub)
            if c.context_layers
            else nn.Identity()
        )
        self.decoder = LSTMDecoder(c.latent, c.lstm_layers)
        self.apply(_initialise)

    def embed(self, views: Tensor) -> Tensor:
        """(N, C, S, S) → (N, |B|, L): what the decoder reads, and what the prior compares."""
        beams = self.beams(views)  # (N, |B|, C, 2ε+1, D)
        embeddings = self.encoder(beams)  # (N, |B|, L)
        context: Tensor = self.context(embeddings)  # (N, |B|, L)
        return context

    def forward(self, views: Tensor) -> Tensor:
        context = self.embed(views)  # (N, |B|, L)
        unit: Tensor = self.decoder(context)  # (N, 2)
        return unit

    def angles(self, views: Tensor) -> Tensor:
        """(N, C, S, S) → (N,) radians in [0, 2π)."""
        return from_unit(self(views))


class RingBIC(nn.Module):
    """The ring on the same beams: views (N, C, S, S) → logits and offsets, (N, |B|) each."""

    outputs = ("logits", "offsets")

    def __init__(self, config: BICConfig) -> None:
        super().__init__()
        self.config = c = config
        self.beams = _sampler(c)
        self.ring = Ring(
            c.channels * c.thickness,
            c.beam_length,
            stem=c.ring_stem,
            stem_stride=c.ring_stem_stride,
            stages=c.ring_stages,
            depth=c.ring_depth,
            width=c.ring_width,
            dilations=c.ring_dilations,
            num_beams=c.num_beams,
            attention=c.ring_attention,
            drop=c.ring_drop,
        )

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        beams = self.beams(views)  # (N, |B|, C, 2ε+1, D)
        logits, offsets = self.ring(beams)  # (N, |B|) each
        return logits, offsets

    def angles(self, views: Tensor) -> Tensor:
        """(N, C, S, S) → (N,) radians in [0, 2π)."""
        return answer(posterior(*self(views)))


def _initialise(module: nn.Module) -> None:
    """He initialisation with biases at 0; the LSTM keeps torch's own, made for its gates."""
    if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Linear):
        nn.init.kaiming_normal_(module.weight, a=LEAK, nonlinearity="leaky_relu")
        if module.bias is not None:
            nn.init.zeros_(module.bias)
