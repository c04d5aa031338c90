"""The convolutional network at inference on a GPU, from three Triton kernels.

`with_kernels` gives a folded network this form. Where the kernels cannot run (on a CPU, in another
precision, in training), it computes as before. `convolutional` defines what is computed; features
here are (N, H, W, C), whose memory is that of (N, C, H, W) channels-last.

This module can be imported only where Triton is installed.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from radialbeams.nn.convolutional import SCALE, SHIFT, Convolutional
from radialbeams.nn.kernels.arithmetic import may_compute_in, rounded, usable
from radialbeams.nn.kernels.depthwise import Footprint, can_compute, depthwise
from radialbeams.nn.kernels.product import product, sizes_fit
from radialbeams.nn.kernels.view_stem import stem


def with_kernels(network: nn.Module) -> None:
    """Prepares the convolutional networks among the modules of a folded network, in place."""
    for part in list(network.modules()):
        if type(part) is Convolutional and _fits(part):
            part.__class__ = KernelConvolutional
            _arrange(part)


def _fits(network: Convolutional) -> bool:
    """Whether the kernels can compute it: a folded network of sizes that a GPU likes."""
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    return all(layer.bias is not None for layer in layers) and all(
        can_compute(layer.kernel_size[0], layer.stride[0], layer.in_channels)
        if layer.groups > 1
        else sizes_fit(layer.in_channels, layer.out_channels)
        for layer in layers
        if layer is not network.stem
    )


def _arrange(network: Convolutional) -> None:
    """Adds the weights in the order in which the kernels read them."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            weight = layer.weight.detach()
            if layer is network.stem:  # (maps, C, 3, 3) → (3 · 3 · C, maps)
                taps = weight.permute(2, 3, 1, 0).flatten(0, 2)
            elif layer.groups > 1:  # (C, 1, K, K) → (K², C)
                taps = weight.flatten(1).t()
            else:  # (maps, C, 1, 1) → (C, maps)
                taps = weight.flatten(1).t()
            if layer.groups == 1:  # a depthwise convolution is no product of matrices
                taps = rounded(taps)
            layer.register_buffer("taps", taps.contiguous(), persistent=False)


class KernelConvolutional(Convolutional):
    """The same network; it computes with the kernels wherever they can run."""

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        return self.with_kernels(views) if self.has_kernels(views) else super().forward(views)

    def has_kernels(self, views: Tensor) -> bool:
        weight = self.stem.weight
        fits = views.ndim == 4 and views.shape[1] == self.config.channels
        own = may_compute_in(weight.dtype) and weight.device == views.device
        return own and fits and usable(self, views)  # whatever else is wrong, torch says

    def with_kernels(self, views: Tensor) -> tuple[Tensor, Tensor]:
        first = self.stem
        features = stem(views, *_weights(first), (SCALE, -SHIFT), _footprint(first))
        for block in self.blocks:
            features = _block(block, features)
        features = product(features, *_weights(self.last), activate=True)  # (N, S/32, S/32, LAST)
        return self.answers(features.mean((1, 2)))


def _block(block: Any, features: Tensor) -> Tensor:
    """A bottleneck: (N, H, W, C) → (N, H', W', maps)."""
    hidden = features
    if block.expands:
        hidden = product(hidden, *_weights(block.expand), activate=True)
    hidden = depthwise(hidden, *_weights(block.depthwise), _footprint(block.depthwise))
    return product(hidden, *_weights(block.project), skip=features if block.skips else None)


def _weights(layer: Any) -> tuple[Tensor, Tensor]:
    """The taps and the bias of a convolution."""
    return layer.taps, layer.bias


def _footprint(layer: Any) -> Footprint:
    both = int(layer.padding[0])  # zeros on each side, unless the sides differ
    before, after = (layer.before, layer.after) if layer.after else (both, both)
    return Footprint(layer.kernel_size[0], layer.stride[0], before, after)
