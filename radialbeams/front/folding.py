"""Folds the batch norms of a trained network into the adjacent convolutions.

At inference, a batch norm scales and shifts every channel, which the weights and the bias of a
convolution can do as well. The folded network gives the same results in fewer passes over the
features; it cannot be trained, and no config describes it.
"""

from __future__ import annotations

import copy
from typing import Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

from radialbeams.nn.kernels.using import INSTALLED
from radialbeams.nn.layers import scale_and_shift

Network = TypeVar("Network", bound=nn.Module)


@runtime_checkable
class Freezable(Protocol):
    """A module that can precompute what is the same in every call at inference."""

    def freeze(self) -> None: ...


@torch.inference_mode(False)  # otherwise the copy could not be used outside inference mode
@torch.no_grad()
def folded(network: Network) -> Network:
    """A copy for inference, with its batch norms folded."""
    copied = copy.deepcopy(network).eval().requires_grad_(False)
    parts = list(copied.modules())
    for part in parts:
        for name, child in list(part.named_children()):
            if isinstance(child, nn.BatchNorm2d):
                _fold(child, name, list(part.named_children()))
                setattr(part, name, nn.Identity())
    for part in parts:
        if isinstance(part, Freezable):
            part.freeze()
    return copied


def with_kernels(network: nn.Module) -> None:
    """Prepares a folded network for the kernels of a GPU, in place.

    Without Triton it stays as it is.
    """
    if INSTALLED:
        from radialbeams.nn import convolutional_kernels, ring_kernels

        ring_kernels.with_kernels(network)
        convolutional_kernels.with_kernels(network)


def _fold(norm: nn.BatchNorm2d, name: str, siblings: list[tuple[str, nn.Module]]) -> None:
    """Folds a norm into the convolution before it: `x` for a norm `x_norm`, or the one before it.

    If there is none, into the 1 × 1 convolution directly after it.
    """
    index = siblings.index((name, norm))
    before = dict(siblings).get(name.removesuffix("_norm"))
    if before is norm:  # its name does not end in _norm
        before = siblings[index - 1][1] if index else None
    if isinstance(before, nn.Conv2d):
        _fold_after(before, norm)
        return
    after = siblings[index + 1][1] if index + 1 < len(siblings) else None
    if not isinstance(after, nn.Conv2d) or after.kernel_size != (1, 1):
        raise ValueError(f"Expected a convolution next to the norm {name!r}; there is none.")
    _fold_before(norm, after)


def _fold_after(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> None:
    mean, variance = norm.get_buffer("running_mean"), norm.get_buffer("running_var")
    weight, bias = fuse_conv_bn_weights(
        convolution.weight, convolution.bias, mean, variance, norm.eps, norm.weight, norm.bias
    )
    convolution.weight, convolution.bias = weight, bias


def _fold_before(norm: nn.BatchNorm2d, convolution: nn.Conv2d) -> None:
    """Folds a norm into the convolution after it; torch only fuses a norm after a convolution."""
    scale, shift = scale_and_shift(norm)
    # Not as a matrix product, which autocast would round.
    moved = (convolution.weight.flatten(1) * shift).sum(1)
    bias = moved if convolution.bias is None else convolution.bias + moved
    _replace(convolution, convolution.weight * scale[:, None, None], bias)


def _replace(convolution: nn.Conv2d, weight: Tensor, bias: Tensor) -> None:
    convolution.weight = nn.Parameter(weight, requires_grad=False)
    convolution.bias = nn.Parameter(bias, requires_grad=False)
