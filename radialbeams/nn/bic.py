"""BIC, the paper's network: beams → encoder → wheel-graph context → LSTM → unit circle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from torch import Tensor, nn

from radialbeams.nn.angles import circle_loss, from_unit
from radialbeams.nn.beam_network import BeamConfig, one_of
from radialbeams.nn.beams import margin
from radialbeams.nn.context import HUBS, Hub, WheelContext
from radialbeams.nn.decoder import LSTMDecoder
from radialbeams.nn.encoder import LEAK, BeamEncoder
from radialbeams.nn.losses import Losses, LossInputs
from radialbeams.nn.network import Network
from radialbeams.nn.prior import prior_loss
from radialbeams.stored import JsonFields


@dataclass(frozen=True)
class BICConfig(BeamConfig):
    """The fields are the paper's symbols; the defaults are its settings for COIL-100."""

    architecture: Literal["lstm"] = "lstm"
    latent: int = 128  # L
    context_layers: int = 3  # 0: without the wheel graph
    edge_factor: float = 0.5  # λ
    # As in the text of the paper. `radialbeams reproduce staircase` measures the alternatives.
    hub: Hub = "held-sum"
    lstm_layers: int = 3

    LIMITS: ClassVar[Mapping[str, tuple[int, int]]] = {
        **BeamConfig.LIMITS,
        "latent": (8, 8192),
        "context_layers": (0, 64),
        "lstm_layers": (1, 64),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("hub", self.hub, HUBS)
        if self.latent % 8:
            raise ValueError(
                f"latent must be a multiple of 8, since the first layer has L/8 maps; "
                f"got {self.latent}. Use {max(8, round(self.latent / 8) * 8)}."
            )
        if not 0 < self.edge_factor <= 1:
            raise ValueError(f"edge_factor λ must lie in (0, 1]; got {self.edge_factor}.")

    @classmethod
    def from_dict(cls, values: JsonFields) -> Self:
        """As for any network; a file without a hub is older than the choice, and had the mean."""
        return super().from_dict({"hub": "mean", **values})

    @classmethod
    def for_images(cls, size: int, **changes: Any) -> BICConfig:
        """The configuration for W × W images by the paper's protocol: padded by δ, D = W/2."""
        return cls(**{"view_size": size + 2 * margin(size), "beam_length": size // 2, **changes})


class BIC(Network):
    """The paper's network: views (N, C, S, S) in [0, 1] → unit vectors (N, 2)."""

    outputs = ("unit",)
    full_precision = ("beams",)
    config: BICConfig

    def __init__(self, config: BICConfig) -> None:
        super().__init__()
        self.config = c = config
        self.beams = c.make_sampler()
        self.encoder = BeamEncoder(c.channels, c.beam_length, c.epsilon, c.latent)
        self.context = (
            WheelContext(c.num_beams, c.latent, c.context_layers, c.edge_factor, c.hub)
            if c.context_layers
            else nn.Identity()
        )
        self.decoder = LSTMDecoder(c.latent, c.lstm_layers)
        self.apply(_initialise)

    def embed(self, views: Tensor) -> Tensor:
        """(N, C, S, S) → (N, |B|, L): the input of the decoder and of the prior."""
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


def bic_loss(network: BIC, inputs: LossInputs) -> tuple[Tensor, Losses]:
    """The circle loss plus, with a prior, the cross-entropy of the shift between two embeddings."""
    circle_weight, prior_weight = inputs.weights
    context = network.embed(inputs.views)  # (N, |B|, L)
    circle = circle_loss(inputs.angles, network.decoder(context)).mean()
    prior = circle.new_zeros(())
    if inputs.prior is not None:
        upright = network.embed(inputs.upright())  # (N, |B|, L)
        prior = prior_loss(inputs.angles, inputs.prior(upright, context)).mean()
    total = circle_weight * circle + prior_weight * prior
    return total, Losses(circle.detach(), prior.detach())


def _initialise(module: nn.Module) -> None:
    """He initialisation with zero biases.

    Differs from the paper: the LSTM keeps torch's own initialisation, which suits its gates.
    """
    if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Linear):
        nn.init.kaiming_normal_(module.weight, a=LEAK, nonlinearity="leaky_relu")
        if module.bias is not None:
            nn.init.zeros_(module.bias)
