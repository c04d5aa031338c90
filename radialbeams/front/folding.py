"""Folding: the norms of a trained network become part of the convolutions beside them.

In inference a norm scales and shifts every channel, which the weights and the bias of a
convolution can do as well. What is left gives the same answers in fewer passes over the features;
it can not be trained, and no config describes it.
"""

from __future__ import annotations

import copy
from typing import Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

Network = TypeVar("Network", bound=nn.Module)


@runtime_checkable
class Freezable(Protocol):
    """A part that can do something once which is the same in every call from then on."""

    def freeze(self) -> None: ...


@torch.inference_mode(False)  # or the copy would be good for nothing outside of that mode
@torch.no_grad()
def folded(network: Network) -> Network:
    """A copy for inference. Without norms there is nothing to fold."""
    made = copy.deepcopy(network).eval().requires_grad_(False)
    parts = list(made.modules())
    for part in parts:
        for name, child in list(part.named_children()):
            if isinstance(child, nn.BatchNorm2d):
                _fold(child, name, list(part.named_children()))
                setattr(part, name, nn.Identity())
    for part in parts:
        if isinstance(part, Freezable):
            part.freeze()
    return made


def _fold(norm: nn.BatchNorm2d, name: str, siblings: list[tuple[str, nn.Module]]) -> None:
    """Into the convolution before it: `x` of a norm `x_norm`, or the one just before it.

    Where there is none, into the 1 × 1 just after it.
    """
    place = siblings.index((name, norm))
    before = dict(siblings).get(name.removesuffix("_norm"))
    if before is norm:  # it has no convolution's name
        before = siblings[place - 1][1] if place else None
    if isinstance(before, nn.Conv2d):
        _fold_after(before, norm)
        return
    after = siblings[place + 1][1] if place + 1 < len(siblings) else None
    if not isinstance(after, nn.Conv2d) or after.kernel_size != (1, 1):
        raise ValueError(f"Expected a convolution beside the norm {name!r}; there is none to fold.")
    _fold_before(norm, after)


def _fold_after(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> None:
    mean, variance = norm.get_buffer("running_mean"), norm.get_buffer("running_var")
    weight, bias = fuse_conv_bn_weights(
        convolution.weight, convolution.bias, mean, variance, norm.eps, norm.weight, norm.bias
    )
    convolution.weight, convolution.bias = weight, bias


def _fold_before(norm: nn.BatchNorm2d, convolution: nn.Conv2d) -> None:
    """Torch fuses a norm after a convolution only; this one stands before it."""
    scale, shift = _scale_and_shift(norm)
    # Not as a product of matrices, which autocast would round.
    moved = (convolution.weight.flatten(1) * shift).sum(1)
    bias = moved if convolution.bias is None else convolution.bias + moved
    _replace(convolution, convolution.weight * scale[:, None, None], bias)


def _scale_and_shift(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """What a norm does to every channel: x·scale + shift."""
    mean, variance = norm.get_buffer("running_mean"), norm.get_buffer("running_var")
    scale = norm.weight * torch.rsqrt(variance + norm.eps)
    return scale, norm.bias - mean * scale


def _replace(convolution: nn.Conv2d, weight: Tensor, bias: Tensor) -> None:
    convolution.weight = nn.Parameter(weight, requires_grad=False)
    convolution.bias = nn.Parameter(bias, requires_grad=False)
