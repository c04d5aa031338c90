"""The ring as it is exported to ONNX, with the same results: the beams are the last axis.

On a CPU, ONNX Runtime convolves fastest along long rows without padding. The rows of `ring` are
samples along a beam, of which deep layers have only 8, 4 or 2. Here they are the beams, so a row
has one number for every beam; padding along the rows is circular and explicit. `ring.coil100`
takes a quarter less time for it, `ring` an eighth less.

The weights keep their names and values: the graph transposes them, which ONNX Runtime does once,
when it loads the file.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from radialbeams.nn.beams import PolarBeams
from radialbeams.nn.posterior import OFFSET_REACH
from radialbeams.nn.ring import Halved, RadialBlock, RingBlock
from radialbeams.nn.ring_network import RingBIC


class ExportedRing(RingBIC):
    """Views (N, C, S, S) in [0, 1] → logits and offsets, (N, |B|) each, for inference only."""

    @classmethod
    def of(cls, network: RingBIC) -> ExportedRing:
        """The same network, with the same tensors, in this form."""
        made = copy.copy(network)
        made.__class__ = cls
        return made  # type: ignore[return-value]

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        ring = self.ring
        image = sampled(self.beams, views)  # (N, C·(2ε+1), D, |B| + 2)
        features = F.gelu(ring.stem_norm(convolved(ring.stem, image)))  # (N, stem, d, |B|)
        for block in ring.radial:
            features = radial(block, features)  # (N, maps, d, |B|)
        rim = F.gelu(ring.collapse_norm(convolved(ring.collapse, features)))  # (N, width, 1, |B|)
        rim = rim + ring.whole(rim.mean((2, 3)))[:, :, None, None]
        for block in ring.ring:
            rim = around(block, rim)  # (N, width, 1, |B|)
        logits, offsets = ring.head(rim).squeeze(2).unbind(1)  # (N, |B|) each
        return logits, OFFSET_REACH * torch.tanh(offsets)


def sampled(beams: nn.Module, views: Tensor) -> Tensor:
    """(N, C, S, S) → (N, C·(2ε + 1), D, |B| + 2): the beams, padded circularly by one."""
    if not isinstance(beams, PolarBeams):
        image = beams(views).flatten(2, 3).permute(0, 2, 3, 1)  # (N, C·(2ε+1), D, |B|)
        return circular(image, 1)
    _, width, length = beams.index.shape[1:]
    # From −1 to 1 between the outer edges of the view: ONNX Runtime has a fast kernel for these.
    places = beams.grid.double() * ((beams.size - 1) / beams.size)
    places = places.reshape(width, -1, length, 2).permute(3, 0, 2, 1)  # (2, 2ε+1, D, |B|)
    grid = circular(places, 1).permute(1, 2, 3, 0).flatten(0, 1).float()
    grid = grid.expand(views.shape[0], -1, -1, -1)  # (N, (2ε+1)·D, |B|+2, 2)
    samples = F.grid_sample(views, grid, align_corners=False)  # (N, C, (2ε+1)·D, |B|+2)
    return samples.reshape(views.shape[0], -1, length, grid.shape[2])


def circular(features: Tensor, beams: int) -> Tensor:
    """Padded circularly by `beams` on both sides of the last axis."""
    return torch.cat((features[..., -beams:], features, features[..., :beams]), dim=-1)


def convolved(layer: nn.Conv2d, features: Tensor) -> Tensor:
    """A convolution whose kernel, stride and padding are transposed."""
    return F.conv2d(
        features,
        layer.weight.transpose(2, 3),
        layer.bias,
        layer.stride[::-1],
        layer.padding[::-1],
        layer.dilation[::-1],
    )


def radial(block: nn.Module, features: Tensor) -> Tensor:
    """A `RadialBlock`: (N, C, d, |B|) → (N, maps, d', |B|)."""
    if not isinstance(block, RadialBlock):
        raise TypeError(f"Expected a radial block; got {type(block).__name__}.")
    hidden = F.gelu(block.first_norm(convolved(block.first, circular(features, 1))))
    hidden = block.second_norm(convolved(block.second, circular(hidden, 1)))
    return F.gelu(hidden + _skipped(block.around, features))


def _skipped(skip: nn.Module, features: Tensor) -> Tensor:
    """The skip connection: perhaps the means of two samples, and a 1 × 1 convolution."""
    if not isinstance(skip, nn.Sequential):
        return features
    shorten, mix, norm = skip
    if isinstance(shorten, Halved):
        features = F.avg_pool2d(features, (2, 1), ceil_mode=features.shape[2] % 2 == 1)
    mixed = mix(features)
    joined: Tensor = norm(mixed)
    return joined


def around(block: nn.Module, rim: Tensor) -> Tensor:
    """A `RingBlock`, or an attention block: (N, width, 1, |B|) → the same."""
    if isinstance(block, RingBlock):
        wide = convolved(block.wide, circular(rim, block.dilation))
        mixed = block.mix(F.gelu(block.wide_norm(wide)))
        return F.gelu(rim + block.mix_norm(mixed))
    attended: Tensor = block(rim.transpose(2, 3))
    return attended.transpose(2, 3)
