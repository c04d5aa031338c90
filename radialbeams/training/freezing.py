"""Freezing: trains the whole network, or only the layers after its first blocks."""

from __future__ import annotations

from torch import nn

from radialbeams.nn.architectures import Network
from radialbeams.nn.convolutional import Convolutional


def set_training(model: Network, frozen: int) -> None:
    """Sets training mode, and freezes the first `frozen` blocks of a convolutional network.

    If blocks are frozen, so are the statistics of all batch norms: small batches would spoil them.
    """
    model.train()
    if not frozen:
        return
    if not isinstance(model, Convolutional) or frozen > len(model.blocks):
        most = len(model.blocks) if isinstance(model, Convolutional) else 0
        raise ValueError(
            f"frozen must be at most the network's {most} convolutional blocks; got {frozen}. "
            "Set it to 0, or use a convolutional network with enough blocks."
        )
    for part in (model.stem, model.stem_norm, *list(model.blocks)[:frozen]):
        part.requires_grad_(False)
    for part in model.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.eval()
