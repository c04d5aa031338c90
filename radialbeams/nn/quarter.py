"""The quarter network: which of the four quarter turns makes a levelled page upright.

One small network scores how upright a view is, and runs on all four quarter turns of a page. So a
quarter turn of the page rolls the four scores and changes nothing else, by construction.

Convention: turns are counter-clockwise as displayed. Score k belongs to the page turned by k
quarter turns, so the largest score gives the turn that makes the page upright.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from radialbeams.stored import JsonDict

TURNS = 4


@dataclass(frozen=True)
class QuarterConfig:
    """The architecture; `size` is the side of the square view of a page in pixels."""

    size: int = 384
    stem: int = 16
    widths: tuple[int, ...] = (32, 64, 96, 160)
    blocks: tuple[int, ...] = (0, 1, 2, 1)
    hidden: int = 128

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", tuple(self.widths))
        object.__setattr__(self, "blocks", tuple(self.blocks))
        if len(self.widths) != len(self.blocks):
            raise ValueError(
                f"Expected as many blocks as widths; got {len(self.blocks)} and {len(self.widths)}."
            )
        if self.size % self.stride:
            raise ValueError(
                f"size must be a multiple of {self.stride}, since every stage halves it; "
                f"got {self.size}."
            )

    @property
    def stride(self) -> int:
        return 1 << (1 + len(self.widths))

    def to_dict(self) -> JsonDict:
        return asdict(self)


def _convolution(
    channels_in: int, channels_out: int, stride: int = 1, kernel: int = 3
) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm2d(channels_out),
    )


class Block(nn.Module):
    """Two 3 × 3 convolutions and a skip connection."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = (_convolution(channels, channels) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.second(F.relu(self.first(x))))


class SpatialPool(nn.Module):
    """The mean over all positions, and a learned weighted sum over positions, per channel."""

    def __init__(self, channels: int, side: int) -> None:
        super().__init__()
        self.places = nn.Conv2d(channels, channels, side, groups=channels)

    def forward(self, x: Tensor) -> Tensor:  # (N, C, h, h) → (N, 2C)
        return torch.cat((x.mean((2, 3)), self.places(x).flatten(1)), 1)


class Scorer(nn.Module):
    """One view (N, 1, S, S) in [0, 1] → (N, 2): is it upright, is it a document."""

    def __init__(self, config: QuarterConfig) -> None:
        super().__init__()
        layers: list[nn.Module] = [_convolution(1, config.stem, 2, 5), nn.ReLU()]
        channels = config.stem
        for width, blocks in zip(config.widths, config.blocks, strict=True):
            layers += [_convolution(channels, width, 2), nn.ReLU()]
            layers += [Block(width) for _ in range(blocks)]
            channels = width
        self.features = nn.Sequential(*layers)
        self.pool = SpatialPool(channels, config.size // config.stride)
        self.head = nn.Sequential(
            nn.Linear(2 * channels, config.hidden), nn.ReLU(), nn.Linear(config.hidden, 2)
        )

    def forward(self, views: Tensor) -> Tensor:
        return self.head(self.pool(self.features(views)))  # type: ignore[no-any-return]


class QuarterNetwork(nn.Module):
    """Pages (N, 1, S, S) in [0, 1] → logits of the four turns (N, 4), logit of "document" (N,)."""

    outputs = ("quarters", "document")

    def __init__(self, config: QuarterConfig) -> None:
        super().__init__()
        self.config = config
        self.scorer = Scorer(config)
        # Divides the logits at inference; fitted on held-out pages after training.
        self.temperature: Tensor
        self.register_buffer("temperature", torch.ones(()))

    def forward(self, pages: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.scorer(four_turns(standardized(pages)))  # (4N, 2)
        scores = scores.unflatten(0, (TURNS, -1)).transpose(0, 1)  # (N, 4, 2)
        return scores[..., 0] / self.temperature, scores[..., 1].mean(1)


class ViewScores(nn.Module):
    """The exported part: views (N, 1, S, S) in [0, 1] → "upright" (N,), "document" (N,).

    The caller rotates the page, and decides after the first view whether to run the others.
    """

    outputs = ("upright", "document")

    def __init__(self, network: QuarterNetwork) -> None:
        super().__init__()
        self.config, self.scorer = network.config, network.scorer

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.scorer(standardized(views))  # (N, 2)
        return scores[:, 0], scores[:, 1]


def standardized(pages: Tensor) -> Tensor:
    """Each page with mean 0 and standard deviation 1, whatever its brightness and contrast."""
    mean = pages.mean((1, 2, 3), keepdim=True)
    spread = (pages - mean).square().mean((1, 2, 3), keepdim=True).sqrt()
    return (pages - mean) / (spread + 0.02)  # a blank page stays blank


def four_turns(pages: Tensor) -> Tensor:
    """(N, C, S, S) → (4N, C, S, S): all pages, then all with one quarter turn, and so on."""
    across = pages.transpose(2, 3)
    return torch.cat((pages, across.flip(2), pages.flip((2, 3)), across.flip(3)))


def quarter_loss(
    quarters: Tensor, document: Tensor, turns: Tensor, has_up: Tensor, has_text: Tensor
) -> tuple[Tensor, Tensor]:
    """Cross-entropies of the turn and of "document".

    `turns` (N,) is the correct turn; pages without an upright direction get a uniform target.
    """
    right = F.one_hot(turns, TURNS).to(quarters.dtype)
    target = torch.where(has_up[:, None], 0.98 * right + 0.005, torch.full_like(right, 1 / TURNS))
    turn = -(target * quarters.log_softmax(1)).sum(1).mean()
    return turn, F.binary_cross_entropy_with_logits(document, has_text.to(document.dtype))
