"""The least time that a network can take on a device, from its bytes and operations.

Each convolution and matrix product reads its inputs and weights once and writes its output once;
everything else (norms, activations, padding) is assumed to be fused into them at no cost, except
that a skip connection is read again. A layer takes the longer of the two times: its bytes at the
speed of a large copy, or its operations at the speed of a large matrix product. Both speeds are
measured on the same device in the same run. The floor is the sum over all layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.on_gpu.timing import back_to_back, device

COPIED = 2**30  # bytes
SIDE = 8192  # of the matrices


@dataclass(frozen=True)
class Layer:
    """One layer for one view; weights are read once for a whole batch."""

    values: int  # read and written
    weights: int
    operations: int  # a multiplication and an addition are two


@dataclass(frozen=True)
class Speeds:
    """What a device reaches at best."""

    bytes_per_second: float
    operations_per_second: float


def speeds(dtype: torch.dtype) -> Speeds:
    place = device()
    small = place.type == "cpu"
    source = torch.zeros(COPIED // (64 if small else 1), dtype=torch.uint8, device=place)
    target = torch.empty_like(source)
    copying = back_to_back(lambda: target.copy_(source))
    side = 256 if small else SIDE
    matrix = torch.rand(side, side, dtype=dtype, device=place)
    product = back_to_back(lambda: matrix @ matrix, most=20)
    return Speeds(2 * len(source) / copying, 2 * side**3 / product)


def layers(network: nn.Module, views: Tensor) -> list[Layer]:
    """The layers of a network on the CPU that a call with these views runs through."""
    counter = _Counter(len(views))
    with torch.no_grad(), counter:
        network(views)
    # The views themselves are read once, whatever samples them.
    return [Layer(views[0].numel(), 0, 0), *counter.layers]


def seconds(layers: list[Layer], batch: int, bytes_each: int, speed: Speeds) -> dict[str, float]:
    """Seconds of the floor, layer by layer and as if the whole network were one kernel."""
    each = [
        max(
            bytes_each * (batch * layer.values + layer.weights) / speed.bytes_per_second,
            batch * layer.operations / speed.operations_per_second,
        )
        for layer in layers
    ]
    ends = batch * layers[0].values + sum(layer.weights for layer in layers)
    operations = batch * sum(layer.operations for layer in layers)
    one_kernel = max(
        bytes_each * ends / speed.bytes_per_second, operations / speed.operations_per_second
    )
    return {"layers": sum(each), "one_kernel": one_kernel}


class _Counter(TorchDispatchMode):
    """Notes every convolution and matrix product that is computed meanwhile."""

    def __init__(self, batch: int) -> None:
        super().__init__()
        self.batch = batch
        self.layers: list[Layer] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        name = str(func)
        if "convolution" in name:
            self._note(args[0], args[1], out, 2 * out.numel() * args[1][0].numel())
        elif "addmm" in name:
            self._note(args[1], args[2], out, 2 * out.numel() * args[1].shape[-1])
        elif "aten.mm" in name:
            self._note(args[0], args[1], out, 2 * out.numel() * args[0].shape[-1])
        elif "scaled_dot_product" in name:
            query = args[0]  # (N, heads, |B|, d)
            operations = 4 * query.numel() * query.shape[-2]
            self.layers.append(self._each(4 * query.numel(), 0, operations))
        elif "add.Tensor" in name and _skips(args):
            self.layers.append(self._each(out.numel(), 0, 0))
        return out

    def _note(self, source: Tensor, weight: Tensor, out: Tensor, operations: int) -> None:
        self.layers.append(self._each(source.numel() + out.numel(), weight.numel(), operations))

    def _each(self, values: int, weights: int, operations: int) -> Layer:
        return Layer(values // self.batch, weights, operations // self.batch)


def _skips(args: tuple[Any, ...]) -> bool:
    first, second = args[:2]
    both = isinstance(first, Tensor) and isinstance(second, Tensor)
    return both and first.ndim == 4 and first.shape == second.shape
