"""The convolutional network: a pretrained Cartesian encoder with the same posterior as the ring.

EfficientNet-Lite: inverted bottlenecks with ReLU6 and without squeeze-and-excitation. It is not
equivariant to rotation, so it must learn all rotations; in exchange, it starts from weights that
were pretrained on ImageNet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from radialbeams.nn.layers import StochasticDepth, in_precision_of
from radialbeams.nn.network import Network, NetworkConfig
from radialbeams.nn.posterior import OFFSET_REACH, answer, posterior

EPSILON, MOMENTUM = 1e-3, 0.01  # of the norms, as the pretrained weights expect
SCALE, SHIFT = 255 / 128, 127 / 128  # of views in [0, 1], likewise
STEM, LAST = 32, 1280  # channels of the first and of the last convolution, in every variant


class Stage(NamedTuple):
    """Blocks of one width; `stride` is that of the first block."""

    kernel: int
    stride: int
    expansion: int  # channels inside a block, as a multiple of its input channels


STAGES = (
    Stage(3, 1, 1),
    Stage(3, 2, 6),
    Stage(5, 2, 6),
    Stage(3, 2, 6),
    Stage(5, 1, 6),
    Stage(5, 2, 6),
    Stage(3, 1, 6),
)


class LiteVariant(NamedTuple):
    """Channels and number of blocks of each stage."""

    widths: tuple[int, ...]
    depths: tuple[int, ...]


VARIANTS = {
    "lite0": LiteVariant((16, 24, 40, 80, 112, 192, 320), (1, 2, 2, 3, 3, 4, 1)),
    "lite1": LiteVariant((16, 24, 40, 80, 112, 192, 320), (1, 3, 3, 4, 4, 5, 1)),
    "lite2": LiteVariant((16, 24, 48, 88, 120, 208, 352), (1, 3, 3, 4, 4, 5, 1)),
}


@dataclass(frozen=True)
class ConvolutionalConfig(NetworkConfig):
    """The EfficientNet-Lite variant, the size of its views, and the bins of its posterior."""

    architecture: Literal["convolutional"] = "convolutional"
    variant: str = "lite2"
    view_size: int = 192
    channels: int = 3
    num_bins: int = 72
    drop_path: float = 0.0  # stochastic depth: the rate of the last block
    dropout: float = 0.0  # of the pooled features

    LIMITS: ClassVar[Mapping[str, tuple[int, int]]] = {
        **NetworkConfig.LIMITS,
        "view_size": (32, 4096),
        "num_bins": (4, 4096),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in VARIANTS:
            raise ValueError(f"variant must be one of {', '.join(VARIANTS)}; got {self.variant!r}.")
        if self.num_bins % 4:  # otherwise a quarter turn is not a roll of the bins
            raise ValueError(f"num_bins must be a multiple of 4; got {self.num_bins}.")
        for name in ("drop_path", "dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in [0, 1); got {getattr(self, name)}.")


class SameConv(nn.Conv2d):
    """A convolution with ⌈size/stride⌉ output pixels and TensorFlow's asymmetric padding."""

    def __init__(
        self, channels: int, maps: int, kernel: int, stride: int, size: int, groups: int = 1
    ) -> None:
        missing = max((-(-size // stride) - 1) * stride + kernel - size, 0)
        even = missing % 2 == 0
        super().__init__(
            channels, maps, kernel, stride, missing // 2 if even else 0, groups=groups, bias=False
        )
        # An explicit padding, which copies the image, is needed only if the two sides differ.
        self.before, self.after = (0, 0) if even else (missing // 2, missing - missing // 2)

    def forward(self, features: Tensor) -> Tensor:
        if self.after:
            features = F.pad(features, (self.before, self.after) * 2)
        return super().forward(features)


def _norm(maps: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(maps, eps=EPSILON, momentum=MOMENTUM)


class Bottleneck(nn.Module):
    """1 × 1 expansion, depthwise, 1 × 1 projection; a skip connection if the shapes agree."""

    def __init__(
        self, channels: int, maps: int, stage: Stage, stride: int, size: int, drop: float
    ) -> None:
        super().__init__()
        inside = channels * stage.expansion
        self.skips = stride == 1 and channels == maps
        if stage.expansion > 1:
            self.expand = nn.Conv2d(channels, inside, 1, bias=False)
            self.expand_norm = _norm(inside)
        self.expands = stage.expansion > 1
        self.depthwise = SameConv(inside, inside, stage.kernel, stride, size, groups=inside)
        self.depthwise_norm = _norm(inside)
        self.project = nn.Conv2d(inside, maps, 1, bias=False)
        self.project_norm = _norm(maps)
        self.depth = StochasticDepth(drop)

    def forward(self, features: Tensor) -> Tensor:
        hidden: Tensor = features
        if self.expands:
            hidden = F.relu6(self.expand_norm(self.expand(hidden)))
        hidden = F.relu6(self.depthwise_norm(self.depthwise(hidden)))
        hidden = self.project_norm(self.project(hidden))
        if self.skips:
            hidden = features + self.depth(hidden)
        return hidden


class Convolutional(Network):
    """Views (N, C, S, S) in [0, 1] → logits and offsets, (N, bins) each, offsets in bins."""

    outputs = ("logits", "offsets")
    config: ConvolutionalConfig

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__()
        self.config = c = config
        self.stem = SameConv(c.channels, STEM, 3, 2, c.view_size)
        self.stem_norm = _norm(STEM)
        self.blocks = nn.Sequential(*_blocks(c, (c.view_size + 1) // 2))
        self.last = nn.Conv2d(VARIANTS[c.variant].widths[-1], LAST, 1, bias=False)
        self.last_norm = _norm(LAST)
        self.dropout = nn.Dropout(c.dropout)
        self.head = nn.Linear(LAST, 2 * c.num_bins)
        self.apply(_initialise)

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        features = self.features(views)  # (N, LAST, S/32, S/32)
        return self.answers(features.mean((2, 3)))

    def answers(self, pooled: Tensor) -> tuple[Tensor, Tensor]:
        """(N, LAST) → logits and offsets, (N, bins) each."""
        logits, offsets = self.head(self.dropout(pooled)).float().chunk(2, dim=-1)
        return logits, OFFSET_REACH * offsets.tanh()

    def features(self, views: Tensor) -> Tensor:
        """(N, C, S, S) → (N, LAST, S/32, S/32): the features before pooling."""
        image = in_precision_of(self.stem, views * SCALE - SHIFT)
        features = F.relu6(self.stem_norm(self.stem(image)))  # (N, STEM, S/2, S/2)
        features = self.blocks(features)  # (N, widths[-1], S/32, S/32)
        return F.relu6(self.last_norm(self.last(features)))

    def angles(self, views: Tensor) -> Tensor:
        """(N, C, S, S) → (N,) radians in [0, 2π)."""
        return answer(posterior(*self(views)))


def _blocks(config: ConvolutionalConfig, size: int) -> list[Bottleneck]:
    """The blocks of all stages; deeper blocks have a higher rate of stochastic depth."""
    widths, depths = VARIANTS[config.variant]
    blocks: list[Bottleneck] = []
    channels = STEM
    for stage, maps, depth in zip(STAGES, widths, depths, strict=True):
        for number in range(depth):
            stride = stage.stride if number == 0 else 1
            drop = config.drop_path * len(blocks) / sum(depths)
            blocks.append(Bottleneck(channels, maps, stage, stride, size, drop))
            channels, size = maps, -(-size // stride)
    return blocks


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out")
    elif isinstance(module, nn.Linear):  # small weights: the posterior starts out flat
        nn.init.normal_(module.weight, std=0.01)
        nn.init.zeros_(module.bias)


def load_encoder(model: Convolutional, tensors: Mapping[str, Tensor]) -> None:
    """Loads pretrained weights into all layers before the head, strictly; keeps the head."""
    head = {name: value for name, value in model.state_dict().items() if name.startswith("head.")}
    encoder = {name: value for name, value in tensors.items() if not name.startswith("head.")}
    try:
        model.load_state_dict({**encoder, **head})
    except RuntimeError as error:
        raise ValueError(
            f"Expected the encoder of {model.config.variant} with {model.config.channels} "
            "channels; the file has other tensors. Convert the weights of that variant."
        ) from error
