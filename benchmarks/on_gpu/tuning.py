"""Tries the tile sizes of the package's kernels, and lets this process use the fastest.

The table shows whether the constants in the package are still the best for a device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.on_gpu.timing import back_to_back, give_back, wait

SETTINGS: dict[str, list[tuple[int, ...]]] = {
    "ring": [(4, 1, 64), (4, 2, 64), (8, 1, 64), (8, 2, 64), (4, 2, 32), (8, 2, 32)],
    "general": [(64, 32), (32, 64), (128, 32), (32, 32), (16, 64), (64, 64)],
}


class Kernel(NamedTuple):
    """How to set a kernel's constants, and calls that show how fast it is with them."""

    set: Callable[[tuple[int, ...]], None]
    small: Callable[[], object]  # compiles it
    calls: dict[str, Callable[[], object]]


class Tuning:
    """Compiles all settings in `prepare`; times them and keeps the best in `measure`."""

    def __init__(self, model: str, network: Any) -> None:
        self.kind = model.split(".")[0]
        self.network = network
        self.usable: list[tuple[int, ...]] = []
        self.errors: dict[str, str] = {}

    def prepare(self) -> None:
        for setting in SETTINGS[self.kind]:
            kernel = self._kernel(2)
            kernel.set(setting)
            try:
                kernel.small()
                wait()
                self.usable.append(setting)
            except Exception as error:  # such as one that needs too much shared memory
                self.errors[str(setting)] = repr(error)[:200]
        if self.usable:
            kernel.set(self.usable[0])

    def measure(self) -> dict[str, Any]:
        """Microseconds of each setting; the one with the least product of times is kept."""
        found: dict[str, Any] = {"errors": self.errors}
        best = math.inf
        kernel, kept = self._kernel(4096), None
        for setting in self.usable:
            kernel.set(setting)
            times = {name: 1e6 * back_to_back(call) for name, call in kernel.calls.items()}
            found[str(setting)] = {name: round(value, 1) for name, value in times.items()}
            if math.prod(times.values()) < best:
                best, kept = math.prod(times.values()), setting
        if kept is not None:
            kernel.set(kept)
        give_back()
        return found | {"kept": kept}

    def _kernel(self, most: int) -> Kernel:
        return _ring(self.network, most) if self.kind == "ring" else _depthwise(most)


def _ring(network: Any, most: int) -> Kernel:
    from radialbeams.nn import ring_kernel

    tensors = [network.ring.get_buffer(name) for name in ring_kernel.NAMES]
    depth, width = tensors[0].shape
    beams = network.config.num_beams

    def set_to(setting: tuple[int, ...]) -> None:
        ring_kernel.WARPS[width], ring_kernel.STAGES[width], ring_kernel.CHUNK = setting

    def call(count: int) -> Callable[[], Tensor]:
        rows = _random(count, beams, depth)
        return lambda: ring_kernel.decoded(rows, tensors)

    calls = {f"batch {count}": call(count) for count in (64, most)}
    return Kernel(set_to, call(2), calls)


def _depthwise(most: int) -> Kernel:
    from radialbeams.nn import depthwise_kernel

    def set_to(setting: tuple[int, ...]) -> None:
        depthwise_kernel.PIXELS, depthwise_kernel.CHANNELS = setting

    def call(count: int, side: int, channels: int, kernel: int, stride: int) -> Any:
        x, bias = _random(count, side, side, channels), _random(channels)
        taps = _random(kernel * kernel, channels)
        args = (x, bias, taps, bias, stride, kernel // 2, True)
        return lambda: depthwise_kernel.depthwise(*args)

    count = max(2, most // 16)
    shapes = {
        "96² 96 3/2": (96, 96, 3, 2),
        "48² 144 3/1": (48, 144, 3, 1),
        "12² 720 5/1": (12, 720, 5, 1),
    }
    calls = {name: call(count, *shape) for name, shape in shapes.items()}
    return Kernel(set_to, lambda: [call(2, *shape)() for shape in shapes.values()], calls)


def _random(*shape: int) -> Tensor:
    return torch.rand(shape, device="cuda", dtype=torch.float16)
