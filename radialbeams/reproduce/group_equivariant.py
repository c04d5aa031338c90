"""A CNN that is equivariant to the eight rotations of C8, as a baseline.

Every filter is used at eight rotations. From the second layer on, features have a value for each of
the eight, and a rotation of the image rotates the maps and rolls these values. The last layer pools
over both, so the logits do not depend on a rotation of C8 except by interpolation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ORDER = 8
SIDE = 5  # of the kernels


def rotated_taps(order: int = ORDER, side: int = SIDE) -> Tensor:
    """(order, side², side²): the matrices that rotate a kernel counter-clockwise, bilinearly.

    Taps outside the inscribed disc are zero: a rotation would move them out of the kernel.
    """
    middle = (side - 1) / 2
    matrices = torch.zeros(order, side * side, side * side, dtype=torch.float64)
    for g in range(order):
        turn = 2 * math.pi * g / order
        for row in range(side):
            for column in range(side):
                x, y = column - middle, middle - row  # y points up
                if math.hypot(x, y) > middle + 0.3:
                    continue
                # The value comes from the position that the rotation moves here.
                from_x = math.cos(turn) * x + math.sin(turn) * y + middle
                from_y = middle - (-math.sin(turn) * x + math.cos(turn) * y)
                _spread(matrices[g, row * side + column], from_x, from_y, side)
    return matrices.float()


def _spread(weights: Tensor, x: float, y: float, side: int) -> None:
    """Adds the bilinear weights of a position to the taps around it."""
    left, top = math.floor(x + 1e-9), math.floor(y + 1e-9)
    for column, row in ((left, top), (left + 1, top), (left, top + 1), (left + 1, top + 1)):
        weight = max(0.0, 1 - abs(x - column)) * max(0.0, 1 - abs(y - row))
        if weight > 1e-9 and 0 <= column < side and 0 <= row < side:
            weights[row * side + column] += weight


class GroupConvolution(nn.Module):
    """(N, I·8, S, S) → (N, O·8, S, S); the first layer takes (N, I, S, S) and lifts."""

    def __init__(self, inputs: int, outputs: int, *, lifts: bool = False) -> None:
        super().__init__()
        self.lifts = lifts
        depth = 1 if lifts else ORDER
        scale = math.sqrt(2 / (inputs * depth * SIDE * SIDE))
        self.weight = nn.Parameter(scale * torch.randn(outputs, inputs, depth, SIDE * SIDE))
        self.taps: Tensor
        self.register_buffer("taps", rotated_taps(), persistent=False)

    def kernels(self) -> Tensor:
        """(O·8, I·depth, SIDE, SIDE): every filter at its eight rotations."""
        outputs, inputs, depth, _ = self.weight.shape
        turned = torch.einsum("gpq,oidq->ogidp", self.taps, self.weight)  # (O, 8, I, depth, taps)
        if not self.lifts:
            turned = torch.stack([turned[:, g].roll(g, dims=2) for g in range(ORDER)], dim=1)
        return turned.reshape(outputs * ORDER, inputs * depth, SIDE, SIDE)

    def forward(self, features: Tensor) -> Tensor:
        return F.conv2d(features, self.kernels().to(features.dtype), padding=SIDE // 2)


class GroupNorm8(nn.Module):
    """Batch norm with one mean and one scale for the eight values of a feature."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm3d(features)

    def forward(self, features: Tensor) -> Tensor:
        count, maps, *sides = features.shape
        shared = features.reshape(count, maps // ORDER, ORDER, *sides)
        return self.norm(shared).reshape(features.shape)  # type: ignore[no-any-return]


class GroupClassifier(nn.Module):
    """Images (N, C, S, S) → class logits (N, K): two convolutions a stage, as `SmallClassifier`."""

    def __init__(self, channels: int, classes: int, widths: Sequence[int]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        maps = channels
        for stage, width in enumerate(widths):
            layers += [*_convolution(maps, width, lifts=stage == 0), nn.AvgPool2d(2)]
            layers += _convolution(width, width)
            maps = width
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(maps, classes)

    def forward(self, images: Tensor) -> Tensor:
        features = self.features(images)  # (N, maps·8, s, s)
        by_turn = features.mean((2, 3)).unflatten(1, (-1, ORDER))  # (N, maps, 8)
        logits: Tensor = self.head(by_turn.amax(-1))
        return logits.float()


def _convolution(maps: int, width: int, *, lifts: bool = False) -> list[nn.Module]:
    return [GroupConvolution(maps, width, lifts=lifts), GroupNorm8(width), nn.ReLU()]


def group_parameters(channels: int, classes: int, widths: Sequence[int]) -> int:
    """The parameters of a classifier, without building it."""
    taps = SIDE * SIDE
    before = [channels, *(ORDER * width for width in widths[:-1])]
    stages = sum(
        taps * w * (maps + ORDER * w) + 4 * w for maps, w in zip(before, widths, strict=True)
    )
    return stages + (widths[-1] + 1) * classes


def group_widths(channels: int, classes: int, total: int) -> tuple[int, ...]:
    """Widths in the proportion 1 : 2 : 3 with about this many parameters."""
    candidates = [
        (first, second, third)
        for first in range(2, 40)
        for second in range(2 * first - 1, 2 * first + 2)
        for third in range(3 * first - 2, 3 * first + 3)
    ]
    return min(candidates, key=lambda w: abs(group_parameters(channels, classes, w) - total))
