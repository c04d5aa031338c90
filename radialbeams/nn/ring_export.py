"""The ring as it is exported to ONNX, with the same results in less time.

On a CPU, ONNX Runtime convolves fastest along long rows without padding. The rows of `ring` are
samples along a beam, of which deep layers have only 8, 4 or 2. Here they are the beams, so a row
has one number for every beam; padding along the rows is circular and explicit. Along a beam,
convolutions with a stride of 1 take half of the products (`toom_cook`).

For convolutions ONNX Runtime stores the channels in blocks, and reorders the numbers before and
after operations that cannot read these, such as slices. So where convolutions follow each other,
padding and means are operations that can: convolutions and pooling themselves.

The weights keep their names and values: the graph transposes and combines them, which ONNX Runtime
does once, when it loads the file.
"""

from __future__ import annotations

import copy
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from radialbeams.nn.beams import PolarBeams
from radialbeams.nn.layers import scale_and_shift
from radialbeams.nn.posterior import OFFSET_REACH
from radialbeams.nn.ring import Halved, RadialBlock, RingAttention, RingBlock
from radialbeams.nn.ring_network import RingBIC
from radialbeams.nn.toom_cook import ONE, scheme

# Channels × samples along a beam. With fewer, the sums cost more than the products that they save.
ENOUGH = 512


class ExportedRing(RingBIC):
    """Views (N, C, S, S) in [0, 1] → logits and offsets, (N, |B|) each, for inference only."""

    @classmethod
    def of(cls, network: RingBIC) -> ExportedRing:
        """The same network, with the same tensors, in this form."""
        exported = copy.copy(network)
        exported.__class__ = cls
        return exported  # type: ignore[return-value]

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        ring = self.ring
        image = sampled(self.beams, views)  # (N, C·(2ε+1), D, |B| + 2)
        features = F.gelu(ring.stem_norm(convolved(ring.stem, image)))  # (N, stem, d, |B|)
        for block in ring.radial:
            features = radial(block, features)  # (N, maps, d, |B|)
        rim = F.gelu(ring.collapse_norm(convolved(ring.collapse, features)))  # (N, width, 1, |B|)
        rim = rim + whole(ring.whole, rim)
        for block in ring.ring:
            rim = around(block, rim)  # (N, width, 1, |B|)
        logits, offsets = ring.head(rim).flatten(1).chunk(2, dim=1)  # (N, |B|) each
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
    grid = circular(places, 1).permute(1, 2, 3, 0).flatten(0, 1).float()  # ((2ε+1)·D, |B|+2, 2)
    # All channels as those of one image: weights are then computed once, not for each image.
    planes = views.reshape(1, -1, beams.size, beams.size)  # (1, N·C, S, S)
    samples = F.grid_sample(planes, grid[None], align_corners=False)
    return samples.reshape(-1, views.shape[1] * width, length, grid.shape[1])


def circular(features: Tensor, beams: int) -> Tensor:
    """Padded circularly by `beams` on both sides of the last axis."""
    return torch.cat((features[..., -beams:], features, features[..., :beams]), dim=-1)


def closed(features: Tensor, beams: int) -> Tensor:
    """The same by a convolution of each channel: (N, C, d, |B|) → (N, C, d, |B| + 2·beams).

    Its three taps are ones and |B| apart. Padded by zeros, only one of them meets a number.
    """
    channels, size = features.shape[1], features.shape[3]
    ones = torch.ones(channels, 1, 1, 3)
    return F.conv2d(features, ones, None, 1, (0, size + beams), (1, size), channels)


def whole(layer: nn.Linear, rim: Tensor) -> Tensor:
    """A linear layer of the mean of all beams, for every beam: (N, width, 1, |B|) → the same."""
    num_beams = rim.shape[3]
    mean = F.avg_pool2d(rim, (1, num_beams))  # (N, width, 1, 1)
    mixed = F.conv2d(mean, layer.weight[:, :, None, None], layer.bias)
    return F.interpolate(mixed, scale_factor=(1.0, float(num_beams)))  # the nearest: copies


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
    strided = block.first.stride[1] > 1
    size = (features.shape[2] - 1) // block.first.stride[1] + 1
    skipped = _skipped(block.around, features)
    if block.second.in_channels * size < ENOUGH:
        hidden = F.gelu(block.first_norm(convolved(block.first, closed(features, 2))))
        hidden = block.second_norm(convolved(block.second, hidden))
        return F.gelu(hidden + skipped)
    # From here on (N, d', …, |B|). The optimizer removes transposes between two of these blocks.
    if strided:
        hidden = block.first_norm(convolved(block.first, closed(features, 2))).transpose(1, 2)
    else:
        rows = circular(features.transpose(1, 2), 2)
        hidden = in_few_products(block.first, block.first_norm, rows)
    hidden = in_few_products(block.second, block.second_norm, F.gelu(hidden))
    return F.gelu(hidden + skipped.transpose(1, 2)).transpose(1, 2)


def in_few_products(layer: nn.Conv2d, norm: nn.Module, features: Tensor) -> Tensor:
    """A 3 × 3 convolution and its norm: (N, d, C, |B|) → (N, d, maps, |B| − 2).

    The products along a beam are groups of channels, for a convolution around the circle.
    """
    count, size, channels, beams = features.shape
    before, taps, after = (matrix.to(features) for matrix in scheme(size))
    products, maps = len(taps), layer.out_channels
    sums = before @ features.flatten(2)  # (N, tiles·products, C·|B|)
    kernel, bias = with_norm(layer, norm)
    kernel = taps @ kernel.permute(3, 0, 1, 2).flatten(1)  # (products, maps·C·3)
    outputs = F.conv2d(
        sums.reshape(-1, products * channels, 1, beams),
        kernel.reshape(products * maps, channels, 1, 3),
        torch.cat([bias if n == ONE else torch.zeros_like(bias) for n in range(products)]),
        groups=products,
    )  # (N·tiles, products·maps, 1, |B| − 2)
    return (after @ outputs.reshape(count, len(before), -1)).reshape(count, size, maps, beams - 2)


def with_norm(layer: nn.Conv2d, norm: nn.Module) -> tuple[Tensor, Tensor]:
    """Weight and bias of a convolution, with those of an unfolded norm after it."""
    bias = layer.weight.new_zeros(layer.out_channels) if layer.bias is None else layer.bias
    if not isinstance(norm, nn.BatchNorm2d):
        return layer.weight, bias
    scale, shift = scale_and_shift(norm)
    return layer.weight * scale[:, None, None, None], bias * scale + shift


def _skipped(skip: nn.Module, features: Tensor) -> Tensor:
    """The skip connection: perhaps the means of two samples, and a 1 × 1 convolution."""
    if not isinstance(skip, nn.Sequential):
        return features
    shorten, mix, norm = skip
    if isinstance(shorten, Halved):
        # Where the last window is not whole, ONNX Runtime is slow, and 1.20 takes a wrong mean.
        if features.shape[2] % 2:
            features = torch.cat((features, features[:, :, -1:]), dim=2)
        features = F.avg_pool2d(features, (2, 1))
    mixed = mix(features)
    joined: Tensor = norm(mixed)
    return joined


def around(block: nn.Module, rim: Tensor) -> Tensor:
    """A `RingBlock`, or an attention block: (N, width, 1, |B|) → the same."""
    if isinstance(block, RingBlock):
        wide = convolved(block.wide, closed(rim, block.dilation))
        mixed = block.mix(F.gelu(block.wide_norm(wide)))
        return F.gelu(rim + block.mix_norm(mixed))
    if not isinstance(block, RingAttention):
        raise TypeError(f"Expected a block of the ring; got {type(block).__name__}.")
    rim = rim + block.tell(attended(block, rim))
    norm, widen, activation, narrow = block.mix
    wide = F.conv2d(rim, *after_norm(norm, widen))
    narrowed: Tensor = narrow(activation(wide))
    return rim + narrowed


def attended(block: RingAttention, rim: Tensor) -> Tensor:
    """What each beam gathers from all beams: (N, width, 1, |B|) → the same."""
    kernel, bias = after_norm(block.norm, block.ask)
    projected = F.conv2d(rim, kernel, bias).reshape(rim.shape[0], 3 * block.heads, -1, rim.shape[3])
    query, key, value = projected.chunk(3, dim=1)  # (N, heads, width/heads, |B|) each
    scores = query.mT @ key / math.sqrt(query.shape[2]) + block.by_distance()
    return (value @ scores.softmax(-1).mT).reshape(rim.shape)  # a row of scores for each query


def after_norm(norm: nn.Module, layer: nn.Module) -> tuple[Tensor, Tensor]:
    """Weight and bias of a 1 × 1 convolution, with those of an unfolded norm before it."""
    weight, bias = layer.get_parameter("weight"), layer.get_parameter("bias")
    if not isinstance(norm, nn.BatchNorm2d):
        return weight, bias
    scale, shift = scale_and_shift(norm)
    return weight * scale[:, None, None], bias + weight.flatten(1) @ shift
