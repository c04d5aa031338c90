"""Whether a call is served by the kernels of this folder; importing this needs no Triton."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator

import torch
from torch import Tensor

from radialbeams.nn.exporting import is_exporting

INSTALLED = importlib.util.find_spec("triton") is not None
OLDEST = 8  # compute capability; older GPUs have no asynchronous copies and other tensor cores
PRECISIONS = (torch.float16, torch.bfloat16, torch.float32)
MOST_CHANNELS = 4  # of images; each program handles all channels of its pixels

_switch = {"on": True}


def switched_on() -> bool:
    """Whether kernels are allowed at all: `without_kernels` forbids them for a while."""
    return _switch["on"]


def served(*tensors: Tensor) -> bool:
    """Whether kernels without gradients may take these tensors.

    Not where a graph is exported: a file with our kernels would run nowhere else.
    """
    device = tensors[0].device
    if device.type != "cuda" or not (INSTALLED and switched_on()):
        return False
    if any(tensor.device != device or tensor.dtype not in PRECISIONS for tensor in tensors):
        return False  # torch may have an answer to it, or says what is wrong
    if is_exporting() or torch._C._get_tracing_state() is not None:
        return False
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return False
    # Compiling for a GPU needs Triton itself, so there is nothing to find out.
    return torch.compiler.is_compiling() or _new_enough(device)


def _new_enough(device: torch.device) -> bool:
    return torch.version.hip is None and torch.cuda.get_device_capability(device)[0] >= OLDEST


@contextlib.contextmanager
def without_kernels() -> Iterator[None]:
    """Within it, everything runs as on a device without kernels: for comparisons."""
    before = _switch["on"]
    _switch["on"] = False
    try:
        yield
    finally:
        _switch["on"] = before


def device_of(tensor: Tensor) -> contextlib.AbstractContextManager[object]:
    """Triton launches on the current device, which need not be that of the tensor."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else contextlib.nullcontext()
