"""The ring at inference in half precision on a GPU, from a handful of Triton kernels.

`with_kernels` gives a folded ring this form. Where the kernels cannot run (on a CPU, in another
precision, in training), the ring computes as before. `ring` defines what is computed; features here
are (N, |B|, D, C), whose memory is that of (N, C, |B|, D) channels-last.

This module can be imported only where Triton is installed.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from radialbeams.nn.beams import PolarBeams, check_size
from radialbeams.nn.kernels import attention
from radialbeams.nn.kernels import pair as pairs
from radialbeams.nn.kernels import stem as first
from radialbeams.nn.kernels.arithmetic import usable
from radialbeams.nn.kernels.convolution import Along, convolution, sizes_fit
from radialbeams.nn.kernels.ends import WIDEST, head, with_whole
from radialbeams.nn.kernels.sampling import sampled
from radialbeams.nn.posterior import OFFSET_REACH
from radialbeams.nn.ring import Halved, Ring, RingAttention, RingBlock
from radialbeams.nn.ring_fast import FastRing


def with_kernels(network: nn.Module) -> None:
    """Prepares the rings of a folded network, in place."""
    for ring in list(network.modules()):
        # In float32, with operands rounded to TF32, the kernels took longer than torch's layers.
        if type(ring) is FastRing and ring.stem.weight.dtype == torch.float16 and _fits(ring):
            ring.__class__ = KernelRing
            _arrange(ring)
            for sampler in network.modules():
                if type(sampler) is PolarBeams:
                    sampler.__class__ = KernelBeams
                    sampler.register_buffer("corner", sampler.index[0].int(), persistent=False)
                    # Not of four axes, or they would be rearranged in channels-last.
                    sampler.register_buffer("share", sampler.weight.flatten(1), persistent=False)


def _fits(ring: Ring) -> bool:
    """Whether the kernels can compute it: a folded ring of sizes that a GPU likes."""
    layers = [layer for layer in ring.modules() if isinstance(layer, nn.Conv2d)]
    inner = [layer for layer in layers if layer is not ring.stem and layer is not ring.head]
    biased = [ring.stem, ring.collapse, *(block.around[1] for block in _resized(ring))]
    return (
        not any(isinstance(layer, nn.BatchNorm2d) for layer in ring.modules())
        and all(layer.bias is not None for layer in biased)
        and all(block.second.bias is None for block in _resized(ring))
        and all(sizes_fit(layer.in_channels, layer.out_channels) for layer in inner)
        and ring.whole.in_features <= WIDEST
        and first.sizes_fit(ring.stem.weight[0].numel(), ring.stem.out_channels)
        and all(
            block.dilation <= block.num_beams for block in ring.ring if isinstance(block, RingBlock)
        )
    )


def _resized(ring: Ring) -> list[Any]:
    """The radial blocks whose skip connection has a convolution."""
    return [block for block in ring.radial if isinstance(block.around, nn.Sequential)]


def _arrange(ring: Ring) -> None:
    """Adds the weights in the order in which the kernels read them: (taps, C, maps)."""
    for layer in ring.modules():
        if isinstance(layer, nn.Conv2d):
            taps = layer.weight.detach().flatten(2).permute(2, 1, 0)
            layer.register_buffer("taps", taps.contiguous(), persistent=False)
    for block in _resized(ring):  # the mean of two neighbours is two taps of half the weight
        if isinstance(block.around[0], Halved):
            taps = block.around[1].taps
            block.around[1].taps = torch.cat((taps, taps)) / 2
    # (maps, C, 3, stride) → (3 · C · stride, maps), which is how the beams lie in memory
    taps = ring.stem.weight.detach().permute(2, 1, 3, 0).flatten(0, 2)
    ring.stem.taps = taps.contiguous()
    ring.head.taps = ring.head.weight.detach().flatten(1)  # (2, width)
    taps = ring.whole.weight.detach().t().contiguous()
    ring.whole.register_buffer("taps", taps, persistent=False)
    # All places along a beam are one piece of memory, so they are one tap of many channels.
    ring.collapse.taps = ring.collapse.get_buffer("taps").flatten(0, 1)[None]  # (1, d·C, width)


class KernelBeams(PolarBeams):
    """The same beams, from one kernel wherever it can run."""

    corner: Tensor  # (|B|, 2ε+1, D)
    share: Tensor  # (4, |B|·(2ε+1)·D)

    def forward(self, images: Tensor) -> Tensor:
        if not usable(self, images):
            return super().forward(images)
        check_size(images, self.size)
        return sampled(images, self.corner, self.share)  # (N, |B|, C, 2ε+1, D)


class KernelRing(FastRing):
    """The same ring; it computes with the kernels wherever they can run."""

    def forward(self, beams: Tensor) -> tuple[Tensor, Tensor]:
        return self.with_kernels(beams) if self.has_kernels(beams) else super().forward(beams)

    def has_kernels(self, beams: Tensor) -> bool:
        return self.stem.weight.dtype == torch.float16 and usable(self, beams)

    def with_kernels(self, beams: Tensor) -> tuple[Tensor, Tensor]:
        taps, bias = _weights(self.stem)
        features = first.stem(beams, taps, bias, self.stem.stride[1])  # (N, |B|, D/stride, stem)
        for block in self.radial:
            features = _radial(block, features)  # (N, |B|, d, maps)
        ring = convolution(features.flatten(2)[:, :, None], *_weights(self.collapse))
        ring = with_whole(ring, *_weights(self.whole))  # (N, |B|, 1, width)
        for block in self.ring:
            attends = isinstance(block, RingAttention)
            ring = _attended(block, ring) if attends else _around(block, ring)
        return head(ring, *_weights(self.head), OFFSET_REACH)  # (N, |B|) each


def _weights(layer: Any) -> tuple[Tensor, Tensor]:
    """The taps and the bias of a convolution."""
    return layer.taps, layer.bias


def _radial(block: Any, features: Tensor) -> Tensor:
    """A radial block: (N, |B|, D, C) → (N, |B|, d, maps)."""
    read = Along(taps=3, stride=block.first.stride[1], padding=1)
    hidden = convolution(features, *_weights(block.first), read=read)
    taps, bias = _weights(block.second)
    read = Along(taps=3, padding=1)
    if isinstance(block.around, nn.Identity):
        return convolution(hidden, taps, bias, read=read, skip=features)
    taps2, bias = _weights(block.around[1])
    return convolution(hidden, taps, bias, read=read, beside=(features, taps2, taps2.shape[0]))


def _around(block: Any, ring: Tensor) -> Tensor:
    """A ring block on (N, |B|, 1, C)."""
    return _both(block.wide, block.mix, ring, block.dilation, True)


def _both(wide: Any, mix: Any, ring: Tensor, dilation: int, activate: bool) -> Tensor:
    """ring + mix(gelu(wide(ring))), and GELU if `activate`; in one kernel if it is small enough."""
    if pairs.fits(wide.in_channels, wide.out_channels, mix.out_channels):
        both = (_weights(wide), _weights(mix))
        return pairs.pair(ring, *both, dilation=dilation, activate=activate)
    hidden = convolution(ring, *_weights(wide), read=Along(dilation=dilation))
    return convolution(hidden, *_weights(mix), skip=ring, activate=activate)


def _attended(block: Any, ring: Tensor) -> Tensor:
    """An attention block on (N, |B|, 1, C)."""
    count, beams = ring.shape[:2]
    projected = convolution(ring, *_weights(block.ask), activate=False)  # (N, |B|, 1, 3·C)
    bias = block.by_distance()  # (heads, |B|, |B|)
    if attention.fits(beams, ring.shape[3] // block.heads):
        told = attention.attended(projected, bias)
    else:
        parts = projected.reshape(count, beams, 3, block.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind()  # (N, heads, |B|, C/heads) each
        bias = bias.to(query.dtype)[None]
        heads = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        told = heads.transpose(1, 2).reshape(ring.shape)
    ring = convolution(told, *_weights(block.tell), skip=ring, activate=False)
    return _both(block.mix[1], block.mix[3], ring, 1, False)
