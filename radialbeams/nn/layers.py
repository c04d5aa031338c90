"""Layers that several networks share."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class StochasticDepth(nn.Module):
    """In training, drops a block's branch for a share of the views: the skip connection remains.

    Not torchvision's layer of that name, since torchvision is not a dependency.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def freeze(self) -> None:
        """For inference, whatever mode the network is put in later."""
        self.share = 0.0

    def forward(self, branch: Tensor) -> Tensor:
        if not (self.training and self.share):
            return branch
        kept = torch.rand(branch.shape[0], 1, 1, 1, device=branch.device) >= self.share
        return branch * kept / (1 - self.share)


def in_precision_of(layer: nn.Conv2d, image: Tensor) -> Tensor:
    """Views and beams are float32; if the network has less, this is where it begins."""
    if image.dtype == layer.weight.dtype:
        return image
    return image.to(layer.weight.dtype, memory_format=torch.channels_last)
