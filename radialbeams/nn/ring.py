"""The ring: a network that is equivariant to rolls of the beams.

A rotation of the image by 360°/|B| rolls its beams by one. Every layer here treats all beams alike
and joins them in a circle, so the output rolls by one too: the estimate rotates with the image by
construction, and only the angle within one step has to be learned. `ring_fast` has faster forms of
these layers, mainly for a GPU.

The names of the layers are those of the tensors in every weights file, so they must not change.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from radialbeams.nn.layers import StochasticDepth, in_precision_of
from radialbeams.nn.posterior import OFFSET_REACH

HEADS = 8  # of attention


def circular(features: Tensor, beams: int) -> Tensor:
    """(N, C, |B|, D) padded circularly by `beams` beams on both sides."""
    return torch.cat((features[:, :, -beams:], features, features[:, :, :beams]), dim=2)


class Pointwise(nn.Conv2d):
    """A 1 × 1 convolution."""

    def __init__(self, channels: int, maps: int, bias: bool = True) -> None:
        super().__init__(channels, maps, 1, bias=bias)


class Halved(nn.AvgPool2d):
    """(N, C, |B|, D) → (N, C, |B|, ⌈D/2⌉): the means of two neighbours along the beams."""

    def __init__(self) -> None:
        super().__init__((1, 2), ceil_mode=True)


class RadialBlock(nn.Module):
    """Two 3 × 3 convolutions and a skip connection: circular across beams, strided along them."""

    def __init__(self, channels: int, maps: int, stride: int, drop: float = 0.0) -> None:
        super().__init__()
        self.depth = StochasticDepth(drop)
        self.first = nn.Conv2d(channels, maps, 3, (1, stride), (0, 1), bias=False)
        self.first_norm = nn.BatchNorm2d(maps)
        self.second = nn.Conv2d(maps, maps, 3, 1, (0, 1), bias=False)
        self.second_norm = nn.BatchNorm2d(maps)
        same = channels == maps and stride == 1
        self.around = (
            nn.Identity()
            if same
            else nn.Sequential(
                Halved() if stride == 2 else nn.Identity(),
                Pointwise(channels, maps, bias=False),
                nn.BatchNorm2d(maps),
            )
        )

    def freeze(self) -> None:
        """Merges the biases of branch and skip connection, for inference after folding."""
        if isinstance(self.around, nn.Sequential) and self.second.bias is not None:
            joined = self.around.get_parameter("1.bias") + self.second.get_parameter("bias")
            self.around[1].bias = nn.Parameter(joined, requires_grad=False)
            self.second.bias = None

    def forward(self, features: Tensor) -> Tensor:
        hidden = F.gelu(self.first_norm(self.first(circular(features, 1))))  # (N, maps, |B|, d)
        hidden = self.second_norm(self.second(circular(hidden, 1)))  # (N, maps, |B|, d)
        return F.gelu(self.depth(hidden) + self.around(features))


class RingBlock(nn.Module):
    """A dilated circular convolution over the ring, then a 1 × 1, and a skip connection."""

    def __init__(self, maps: int, num_beams: int, dilation: int, drop: float = 0.0) -> None:
        super().__init__()
        self.num_beams, self.dilation = num_beams, dilation
        self.depth = StochasticDepth(drop)
        self.wide = nn.Conv2d(maps, maps, (3, 1), dilation=(dilation, 1), bias=False)
        self.wide_norm = nn.BatchNorm2d(maps)
        self.mix = Pointwise(maps, maps, bias=False)
        self.mix_norm = nn.BatchNorm2d(maps)

    def convolved(self, ring: Tensor) -> Tensor:
        return self.wide(circular(ring, self.dilation))  # type: ignore[no-any-return]

    def forward(self, ring: Tensor) -> Tensor:
        hidden = F.gelu(self.wide_norm(self.convolved(ring)))  # (N, maps, |B|, 1)
        return F.gelu(ring + self.depth(self.mix_norm(self.mix(hidden))))


class RingAttention(nn.Module):
    """Attention of every beam to every other, by content and by distance around the circle.

    The bias depends on distance and not on position, so it is equivariant to rolls of the beams.
    """

    def __init__(self, maps: int, num_beams: int, drop: float = 0.0, heads: int = HEADS) -> None:
        super().__init__()
        self.heads = heads
        self.depth = StochasticDepth(drop)
        self.norm = nn.BatchNorm2d(maps)
        self.ask = Pointwise(maps, 3 * maps)
        self.tell = Pointwise(maps, maps)
        self.mix = nn.Sequential(
            nn.BatchNorm2d(maps),
            Pointwise(maps, 2 * maps),
            nn.GELU(),
            Pointwise(2 * maps, maps),
        )
        self.apart = nn.Parameter(torch.zeros(heads, num_beams))  # (heads, distance)
        beams = torch.arange(num_beams)
        self.distance: Tensor
        self.register_buffer("distance", (beams[:, None] - beams) % num_beams, persistent=False)
        self.frozen: Tensor | None
        self.register_buffer("frozen", None)

    def freeze(self) -> None:
        """Stores the bias by distance, which is constant at inference."""
        self.frozen = self.by_distance()
        self.register_parameter("apart", None)

    def by_distance(self) -> Tensor:
        """(heads, |B|, |B|): the bias for each pair of beams."""
        if self.frozen is not None:
            return self.frozen
        return self.get_parameter("apart")[:, self.distance]

    def forward(self, ring: Tensor) -> Tensor:
        projected = self.ask(self.norm(ring)).squeeze(3)  # (N, 3·C, |B|)
        query, key, value = (
            part.unflatten(1, (self.heads, -1)).transpose(2, 3)
            for part in projected.chunk(3, dim=1)
        )  # (N, heads, |B|, C/heads) each
        bias = self.by_distance().to(query.dtype)  # (heads, |B|, |B|)
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=bias[None])
        ring = ring + self.depth(self.tell(attended.transpose(2, 3).flatten(1, 2)[..., None]))
        mixed: Tensor = self.depth(self.mix(ring))
        return ring + mixed


class Ring(nn.Module):
    """Beams (N, |B|, C, 2ε + 1, D) → logits and offsets, (N, |B|) each, offsets in beam steps."""

    def __init__(
        self,
        channels: int,
        beam_length: int,
        stem: int,
        stages: Sequence[int],
        depth: int,
        width: int,
        dilations: Sequence[int],
        stem_stride: int,
        num_beams: int,
        attention: int = 0,
        drop: float = 0.0,
    ) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, stem, (3, stem_stride), (1, stem_stride), bias=False)
        self.stem_norm = nn.BatchNorm2d(stem)
        blocks: list[nn.Module] = []
        length, maps = beam_length // stem_stride, stem
        for stage in stages:
            for block in range(depth):
                blocks.append(RadialBlock(maps, stage, 2 if block == 0 else 1, drop))
                maps = stage
            length = (length + 1) // 2
        self.radial = nn.Sequential(*blocks)
        self.collapse = nn.Conv2d(maps, width, (1, length), bias=False)
        self.collapse_norm = nn.BatchNorm2d(width)
        self.whole = nn.Linear(width, width)
        self.ring = nn.Sequential(
            *(RingBlock(width, num_beams, dilation, drop) for dilation in dilations),
            *(RingAttention(width, num_beams, drop) for _ in range(attention)),
        )
        self.head = Pointwise(width, 2)

    def forward(self, beams: Tensor) -> tuple[Tensor, Tensor]:
        image = beams.flatten(2, 3).transpose(1, 2)  # (N, C·(2ε+1), |B|, D)
        image = in_precision_of(self.stem, circular(image, 1))
        features = F.gelu(self.stem_norm(self.stem(image)))  # (N, stem, |B|, D/stride)
        features = self.radial(features)  # (N, maps, |B|, d)
        return self.decoded(features)  # (N, |B|) each

    def decoded(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """(N, maps, |B|, d) → logits and offsets: along the beams, then around the ring."""
        ring = F.gelu(self.collapse_norm(self.collapse(features)))  # (N, width, |B|, 1)
        whole = self.whole(ring.mean((2, 3)))  # (N, width): the same for every beam
        ring = self.ring(ring + whole[:, :, None, None])  # (N, width, |B|, 1)
        logits, offsets = self.head(ring).float().squeeze(3).unbind(1)  # (N, |B|) each
        return logits, OFFSET_REACH * torch.tanh(offsets)
