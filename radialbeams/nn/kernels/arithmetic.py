"""What the kernels of a network share: the device they run on, and GELU."""

from __future__ import annotations

import os

import torch
import triton
import triton.language as tl

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # in tests: on a CPU, without a GPU
LEAST_CAPABILITY = (8, 0)  # from here on, GPUs copy to shared memory while they compute


@torch.compiler.assume_constant_result
def can_run(device: torch.device) -> bool:
    """Whether the kernels run on this device."""
    if device.type == "cuda":
        return bool(
            torch.version.hip is None
            and torch.cuda.get_device_capability(device) >= LEAST_CAPABILITY
        )
    return INTERPRETED


@triton.jit
def gelu(x):
    """x · Φ(x), with Φ from a polynomial: off by at most 4e-5, less than half precision rounds.

    It takes a third of the instructions of an exact erf, and at these sizes they would show.
    """
    near = tl.minimum(tl.maximum(x, -4.5), 4.5)
    s = near * near
    q = 3.000217435600305e-11 * s - 3.28410809657953e-09
    q = q * s + 1.5803325936758483e-07
    q = q * s - 4.43183989773388e-06
    q = q * s + 8.121153950924054e-05
    q = q * s - 0.0010362656321376562
    q = q * s + 0.009580698795616627
    q = q * s - 0.06597734987735748
    q = q * s + 0.39870861172676086
    return x * tl.maximum(near * q + 0.5, 0.0)  # not below 0, or a large −x would show
