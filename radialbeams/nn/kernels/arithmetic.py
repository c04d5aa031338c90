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


def may_compute_in(dtype: torch.dtype) -> bool:
    """Whether products in this precision may be those of tensor cores.

    In float32 only where torch's own convolutions may round to TF32.
    """
    if dtype == torch.float32:
        return bool(torch.backends.cudnn.enabled and torch.backends.cudnn.allow_tf32)
    return dtype == torch.float16


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
def operand(x):
    """Float32 values rounded to TF32, which tensor cores would cut off; others as they are.

    Rounded, products are as precise as those of torch's convolutions, whose operands are, too.
    """
    if x.dtype == tl.float32:
        bits = x.to(tl.int32, bitcast=True)
        near = ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
        x = tl.where(x == x, near, x)  # a NaN stays one
    return x


def rounded(weights: Tensor) -> Tensor:
    """`operand` for weights, once and for all."""
    if weights.dtype != torch.float32:
        return weights
    bits = weights.contiguous().view(torch.int32)
    return ((bits + 0x1000) & -0x2000).view(torch.float32)


def step_of(channels: int, dtype: torch.dtype) -> int:
    """A tile's step through the channels: in float32 half of them, which are as many bytes."""
    return channels if dtype != torch.float32 else max(16, channels // 2)


@triton.jit
def relu6(x):
    return tl.minimum(tl.maximum(x, 0.0), 6.0)
