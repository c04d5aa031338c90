"""Layers that several networks share."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class StochasticDepth(nn.Module):
    """In training, drops the residual branch of a block for a share of the views.

    Not torchvision's layer of that name, since torchvision is not a dependency.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def freeze(self) -> None:
        """Prepares for inference, even if the network is put into training mode later."""
        self.share = 0.0

    def forward(self, branch: Tensor) -> Tensor:
        if not (self.training and self.share):
            return branch
        survives = torch.rand(branch.shape[0], 1, 1, 1, device=branch.device) >= self.share
        return branch * survives / (1 - self.share)


def in_precision_of(layer: nn.Conv2d, image: Tensor) -> Tensor:
    """Converts an image, which is float32, to the precision of the layer."""
    if image.dtype == layer.weight.dtype:
        return image
    return image.to(layer.weight.dtype, memory_format=torch.channels_last)


def scale_and_shift(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """The scale and shift of a norm: it maps x to x·scale + shift in every channel."""
    mean, variance = norm.get_buffer("running_mean"), norm.get_buffer("running_var")
    scale = norm.weight * torch.rsqrt(variance + norm.eps)
    return scale, norm.bias - mean * scale
