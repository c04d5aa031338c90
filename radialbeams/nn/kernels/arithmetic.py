"""What the kernels of a network share: the device they run on, and activations."""

from __future__ import annotations

import os

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from radialbeams.nn.exporting import is_exporting
from radialbeams.nn.kernels.using import switched_on

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # in tests: on a CPU, without a GPU
# GPUs with the shared memory that the tiles are made for: A100, H100 and H200, B200 and B300.
CAPABILITIES = ((8, 0), (9, 0), (10, 0), (10, 3))


@torch.compiler.assume_constant_result
def can_run(device: torch.device) -> bool:
    """Whether the kernels run on this device."""
    if device.type == "cuda":
        return bool(
            torch.version.hip is None and torch.cuda.get_device_capability(device) in CAPABILITIES
        )
    return INTERPRETED


def usable(module: nn.Module, given: Tensor) -> bool:
    """Whether a module may use kernels; a file that is exported must run without them."""
    exported = is_exporting() or torch.jit.is_tracing()  # type: ignore
    return (
        switched_on()
        and not (module.training or exported)
        and not (torch.is_grad_enabled() and given.requires_grad)
        and not torch.is_autocast_enabled(given.device.type)
        and can_run(given.device)
    )


@triton.jit
def gelu(x):
    """x · Φ(x), with Φ from a polynomial: off by at most 3.2e-5, less than half precision rounds.

    It takes half the instructions of an exact erf, and at these sizes they would show.
    """
    near = tl.minimum(tl.maximum(x, -4.375), 4.375)
    t = near * near * 0.10448979591836735 - 1.0  # from −1 to 1
    q = 0.002856261096894741 * t - 0.0077794818207621574
    q = q * t + 0.010345675982534885
    q = q * t - 0.015415689907968044
    q = q * t + 0.02667800709605217
    q = q * t - 0.04008128121495247
    q = q * t + 0.05534372851252556
    q = q * t - 0.07896361500024796
    q = q * t + 0.1613023430109024
    return x * tl.maximum(near * q + 0.5, 0.0)  # below the polynomial's reach exactly 0


@triton.jit
def relu6(x):
    return tl.minimum(tl.maximum(x, 0.0), 6.0)
