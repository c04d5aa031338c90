"""The ring: a network that commutes with rolls of the beams, and the posterior that it gives.

A turn of the image by 360°/|B| rolls its beams by one. Every layer here treats all beams alike
and joins them in a circle, so the output rolls along: the answer turns with the image by
construction, and only the angle within one step is left to learn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from radialbeams.nn.angles import TURN, circle_loss, positive, to_unit, wrap

WITHIN = math.radians(10)  # confidence is the posterior mass this close to the answer
UPRIGHT = math.radians(5)  # an image turned by less counts as upright
OFFSET_REACH = 1.5  # beam steps that a beam's offset can reach to either side
HEADS = 8  # of attention
REACHED = 2  # beams on either side that a block of two 3 × 3 convolutions reads
MOMENTS = 6  # the highest k-fold symmetry that is told apart


class Posterior(NamedTuple):
    """What the ring says of each view: (N, |B|) log-probabilities, and the angle of each beam."""

    log_probabilities: Tensor
    angles: Tensor  # radians: the beam's own angle and its offset


def circular(features: Tensor, beams: int) -> Tensor:
    """(N, C, |B|, D) with the last `beams` in front of the first, and the first behind the last."""
    return torch.cat((features[:, :, -beams:], features, features[:, :, :beams]), dim=2)


def in_precision_of(layer: nn.Conv2d, image: Tensor) -> Tensor:
    """Beams are read in full precision; if the network has less, this is where it begins."""
    if image.dtype == layer.weight.dtype:
        return image
    return image.to(layer.weight.dtype, memory_format=torch.channels_last)


def pointwise(features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A 1 × 1 convolution. In half precision on a GPU, a plain product takes half its time."""
    if features.is_cuda and features.dtype == torch.float16:
        return _product(features, weight, bias)
    return F.conv2d(features, weight, bias)


def _product(features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    rows = features.permute(0, 2, 3, 1)  # (N, |B|, D, C), the order in which a GPU has the maps
    return F.linear(rows, weight.flatten(1), bias).permute(0, 3, 1, 2)


class Pointwise(nn.Conv2d):
    """A 1 × 1 convolution as a layer."""

    def __init__(self, channels: int, maps: int, bias: bool = True) -> None:
        super().__init__(channels, maps, 1, bias=bias)

    def forward(self, features: Tensor) -> Tensor:
        return pointwise(features, self.weight, self.bias)


class Dropped(nn.Module):
    """In training, leaves a block's branch out of a share of the views: they go the way around.

    A network of which every view sees another part learns less by heart.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def settle(self) -> None:
        """For inference, whatever mode the network is put in later."""
        self.share = 0.0

    def forward(self, branch: Tensor) -> Tensor:
        if not (self.training and self.share):
            return branch
        kept = torch.rand(branch.shape[0], 1, 1, 1, device=branch.device) >= self.share
        return branch * kept / (1 - self.share)


class Halved(nn.Module):
    """(N, C, |B|, D) → (N, C, |B|, ⌈D/2⌉): the means of two neighbours along the beams."""

    def forward(self, features: Tensor) -> Tensor:
        if features.is_cuda and not self.training and features.shape[-1] % 2 == 0:
            return _halved(features)  # a GPU's pooling is slow, this is not; its gradient is
        return F.avg_pool2d(features, (1, 2), ceil_mode=True)


def _halved(features: Tensor) -> Tensor:
    return torch.lerp(features[..., ::2], features[..., 1::2], 0.5)


class RadialBlock(nn.Module):
    """Two 3 × 3 convolutions with a way around: circular across beams, strided along them."""

    def __init__(self, channels: int, maps: int, stride: int, drop: float = 0.0) -> None:
        super().__init__()
        self.dropped = Dropped(drop)
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

    def settle(self) -> None:
        """For inference, once folded: both ways are added, so one bias will do."""
        if isinstance(self.around, nn.Sequential) and self.second.bias is not None:
            joined = self.around.get_parameter("1.bias") + self.second.get_parameter("bias")
            self.around[1].bias = nn.Parameter(joined, requires_grad=False)
            self.second.bias = None

    def forward(self, features: Tensor, surrounded: bool = False) -> Tensor:
        """`surrounded` features have more beams on both sides, of which this uses up two."""
        if surrounded:
            hidden = F.gelu(self.first_norm(self.first(features)))
            hidden = self.second_norm(self.second(hidden))
            features = features[:, :, REACHED:-REACHED]
        else:
            hidden = F.gelu(self.first_norm(self.first(circular(features, 1))))
            hidden = self.second_norm(self.second(circular(hidden, 1)))
        return F.gelu(self.dropped(hidden) + self.around(features))


class RingBlock(nn.Module):
    """A dilated circular convolution over the ring, then a 1 × 1, with a way around."""

    def __init__(self, maps: int, num_beams: int, dilation: int, drop: float = 0.0) -> None:
        super().__init__()
        self.dilation = dilation
        self.dropped = Dropped(drop)
        self.wide = nn.Conv2d(maps, maps, (3, 1), dilation=(dilation, 1), bias=False)
        self.wide_norm = nn.BatchNorm2d(maps)
        self.mix = Pointwise(maps, maps, bias=False)
        self.mix_norm = nn.BatchNorm2d(maps)
        three = torch.arange(num_beams)[:, None] + dilation * torch.arange(-1, 2)  # (|B|, 3)
        self.three: Tensor
        self.register_buffer("three", three.flatten() % num_beams, persistent=False)

    def forward(self, ring: Tensor) -> Tensor:
        hidden = F.gelu(self.wide_norm(self._convolved(ring)))
        return F.gelu(ring + self.dropped(self.mix_norm(self.mix(hidden))))

    def _convolved(self, ring: Tensor) -> Tensor:
        """`self.wide(circular(ring, dilation))` as one 1 × 1: wide dilations are slow on a GPU.

        In the order in which a GPU has the maps, channels last: any other would be copied twice.
        """
        beams = self._with_neighbours(ring.permute(0, 2, 3, 1))  # (N, |B|, 1, 3·C)
        weight = self.wide.weight.transpose(1, 2).flatten(1, 2)[..., None]  # (C, 3·C, 1, 1)
        return pointwise(beams.permute(0, 3, 1, 2), weight, self.wide.bias)

    def _with_neighbours(self, rows: Tensor) -> Tensor:
        """(N, |B|, 1, C) → (N, |B|, 1, 3·C)"""
        if self.training:  # the gradient of rolls is rolls; that of a selection is a slow sum
            return torch.cat((rows.roll(self.dilation, 1), rows, rows.roll(-self.dilation, 1)), 3)
        count, num_beams, _, maps = rows.shape
        return rows.index_select(1, self.three).reshape(count, num_beams, 1, 3 * maps)


class RingAttention(nn.Module):
    """Every beam listens to every other: by what they hold, and by how far apart they are.

    Distances are counted around the circle, so this too commutes with rolls of the beams.
    """

    def __init__(self, maps: int, num_beams: int, drop: float = 0.0, heads: int = HEADS) -> None:
        super().__init__()
        self.heads = heads
        self.dropped = Dropped(drop)
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
        self.settled: Tensor | None
        self.register_buffer("settled", None)

    def settle(self) -> None:
        """For inference: what beams listen to by their distance is then the same in every call."""
        self.settled = self.by_distance()
        self.register_parameter("apart", None)

    def by_distance(self) -> Tensor:
        """(heads, |B|, |B|)"""
        if self.settled is not None:
            return self.settled
        return self.get_parameter("apart")[:, self.distance]

    def forward(self, ring: Tensor) -> Tensor:
        asked = self.ask(self.norm(ring)).squeeze(3)  # (N, 3·C, |B|)
        query, key, value = (
            part.unflatten(1, (self.heads, -1)).transpose(2, 3) for part in asked.chunk(3, dim=1)
        )  # (N, heads, |B|, C/heads) each
        bias = self.by_distance().to(query.dtype)  # (heads, |B|, |B|)
        heard = F.scaled_dot_product_attention(query, key, value, attn_mask=bias[None])
        ring = ring + self.dropped(self.tell(heard.transpose(2, 3).flatten(1, 2)[..., None]))
        mixed: Tensor = self.dropped(self.mix(ring))
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
        around = 1 + REACHED * len(self.radial)
        surrounded = self._surrounds(image, around)
        image = in_precision_of(self.stem, circular(image, around if surrounded else 1))
        features = F.gelu(self.stem_norm(self.stem(image)))  # (N, stem, |B| or more, D/stride)
        for block in self.radial:
            features = block(features, surrounded)
        # (N, maps, |B|, d)
        ring = F.gelu(self.collapse_norm(self.collapse(features)))  # (N, width, |B|, 1)
        whole = self.whole(ring.mean((2, 3)))  # (N, width): the same for every beam
        ring = self.ring(ring + whole[:, :, None, None])  # (N, width, |B|, 1)
        logits, offsets = self.head(ring).float().squeeze(3).unbind(1)  # (N, |B|) each
        return logits, OFFSET_REACH * torch.tanh(offsets)

    def _surrounds(self, image: Tensor, around: int) -> bool:
        """Whether the circle is closed once, for all blocks: copies cost a GPU more than beams.

        Not in training, where the beams that come twice would count twice in the norms.
        """
        return image.is_cuda and not self.training and image.shape[2] >= around


# --- the posterior ---------------------------------------------------------------------------


def posterior(logits: Tensor, offsets: Tensor, temperature: float = 1.0) -> Posterior:
    """Two of (N, |B|) → log-probabilities and the angle that each beam stands for."""
    beams = torch.arange(logits.shape[-1], device=logits.device, dtype=offsets.dtype)
    angles = (beams + offsets) * (TURN / logits.shape[-1])
    return Posterior((logits / temperature).log_softmax(-1), angles)


def answer(found: Posterior) -> Tensor:
    """(N,) radians in [0, 2π): the likeliest beam, moved by its offset."""
    best = found.log_probabilities.argmax(-1, keepdim=True)
    return positive(found.angles.gather(-1, best).squeeze(-1))


def confidence(found: Posterior, spread: float = 0.0) -> Tensor:
    """(N,) in [0, 1]: the posterior mass within ±10° of the answer."""
    return mass_near(found, answer(found), WITHIN, spread)


def mass_near(found: Posterior, angles: Tensor, within: float, spread: float = 0.0) -> Tensor:
    """(N,) in [0, 1]: the posterior mass so near to the angles (N,), all in radians.

    `spread` is how far a beam's own answer may be off: each beam is then not a point but a
    logistic bump of that width. On objects that a model has not seen it matters.
    """
    away = wrap(found.angles - angles[:, None]).abs()
    if spread:
        near = torch.sigmoid((within - away) / spread) - torch.sigmoid((-within - away) / spread)
    else:
        near = (away <= within).float()
    return (found.log_probabilities.exp() * near).sum(-1)


def symmetry(found: Posterior, threshold: float = 0.5) -> Tensor:
    """(N,) integers: 1 = one clear up, k = the same every 360°/k, 0 = no up.

    The k-th circular moment is the length of the mean of e^{ikθ}; a k-fold posterior has its
    first strong one at k. The smallest strong k wins, and a flat posterior has none.
    """
    mass = found.log_probabilities.exp()
    moments = torch.stack(
        [
            (mass[..., None] * to_unit(k * found.angles)).sum(-2).norm(dim=-1)
            for k in range(1, MOMENTS + 1)
        ],
        dim=-1,
    )  # (N, MOMENTS)
    strong = moments >= threshold
    return torch.where(strong.any(-1), strong.float().argmax(-1) + 1, 0)


@dataclass(frozen=True)
class RingLoss:
    """What the ring is trained with: a target, and the weights of what stands beside it."""

    width: float = 1.0  # of the target's bump, in beam steps
    circle: float = 1.0  # the paper's loss of the posterior's mean
    offset: float = 50.0  # 1 − cos of what the beams near the truth answer

    def __post_init__(self) -> None:
        if self.width <= 0:
            raise ValueError(f"The width of a target must be above 0; got {self.width}.")


PARTS = RingLoss()


def ring_loss(
    angles: Tensor, logits: Tensor, offsets: Tensor, parts: RingLoss = PARTS
) -> tuple[Tensor, Tensor]:
    """Radians (N,) against logits and offsets: the loss to minimise, and the plain circle loss.

    Cross-entropy against a von Mises target, the paper's circle loss of the posterior's mean, and
    1 − cos of what the beams near the truth answer.
    """
    found = posterior(logits, offsets)
    step = TURN / logits.shape[-1]
    beams = torch.arange(logits.shape[-1], device=logits.device) * step
    target = (torch.cos(beams - angles[:, None]) / (parts.width * step) ** 2).softmax(-1)
    crossed = -(target * found.log_probabilities).sum(-1)
    mean = (found.log_probabilities.exp()[..., None] * to_unit(found.angles)).sum(-2)
    circle = circle_loss(angles, mean)
    missed = (target * (1 - torch.cos(found.angles - angles[:, None]))).sum(-1)
    loss = crossed + parts.circle * circle + parts.offset * missed
    return loss, circle_loss(angles, to_unit(answer(found)))
