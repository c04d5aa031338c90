"""A plain ResNet-18 at 224 pixels with random weights, as a reference for speed."""

from __future__ import annotations

from torch import Tensor, nn

SIDE = 224
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # channels, stride of the first block


class Block(nn.Module):
    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            *_convolution(channels_in, channels, 3, stride),
            nn.ReLU(),
            *_convolution(channels, channels, 3, 1),
        )
        changed = channels_in != channels or stride != 1
        skip = nn.Sequential(*_convolution(channels_in, channels, 1, stride))
        self.skip = skip if changed else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        added: Tensor = (self.residual(x) + self.skip(x)).relu()
        return added


class ResNet18(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        blocks = []
        before = 64
        for channels, stride in STAGES:
            blocks += [Block(before, channels, stride), Block(channels, channels, 1)]
            before = channels
        stem = (*_convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000))
        self.layers = nn.Sequential(*stem, *blocks, *head)

    def forward(self, images: Tensor) -> Tensor:
        classes: Tensor = self.layers(images)  # (N, 1000)
        return classes


def _convolution(before: int, after: int, size: int, stride: int) -> tuple[nn.Module, nn.Module]:
    return nn.Conv2d(before, after, size, stride, size // 2, bias=False), nn.BatchNorm2d(after)
