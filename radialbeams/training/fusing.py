"""Whether the layers of a network can be replaced by their fast forms, for training on a GPU."""

from __future__ import annotations

import importlib.util

import torch

from radialbeams.nn.architectures import Network
from radialbeams.nn.convolutional import Convolutional


def fuse(model: Network, device: torch.device) -> None:
    """Replaces them in place."""
    if not isinstance(model, Convolutional):
        raise ValueError("Fused layers exist for the convolutional network only; leave --fuse out.")
    if device.type != "cuda":
        raise ValueError(f"Fused layers need a GPU; got {device}. Leave --fuse out.")
    if importlib.util.find_spec("triton") is None:
        raise ValueError("Fused layers need Triton: install it, or leave --fuse out.")
    from radialbeams.training.kernels import accelerate

    accelerate(model)
