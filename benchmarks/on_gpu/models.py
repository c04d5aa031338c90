"""The pretrained models that are measured on a GPU, ready to be timed."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.on_gpu.timing import device
from radialbeams import zoo
from radialbeams.front.module import Canonicalizer

MODELS = tuple(name for name in ("ring.coil100", "ring", "light", "general") if name in zoo.names())


def network_of(model: str, dtype: torch.dtype, place: str | None = None) -> Any:
    """The network of a pretrained model as it is used for inference."""
    network = Canonicalizer.from_pretrained(model).for_inference(dtype).network
    return network.to(place or device(), memory_format=torch.channels_last)  # type: ignore[call-overload]


def front_of(model: str, dtype: torch.dtype) -> Any:
    """A pretrained model that stands in front of another and turns every image."""
    made = Canonicalizer.from_pretrained(model, abstain=None, snap="none", returns="image")
    ready = made.for_inference(dtype)
    return ready.to(device(), memory_format=torch.channels_last)  # type: ignore[call-overload]
