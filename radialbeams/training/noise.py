"""Isotropic noise for the canary: an angle predicted from it can come only from the rotation.

Isotropic noise is harder to make than it looks. Noise that is filtered on the parent's own square
is periodic with it, is cut at its border and is centred by its own mean. Each of these aligns with
the axes, and a canary finds it even if the views are made without a leak. All filtered noise is
therefore made on canvases eight times as wide, and parents are windows at random positions.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from radialbeams.training.evaluate import through_jpeg

Noise = Literal["white", "pink", "blurred", "jpeg75", "jpeg85", "jpeg95"]
NOISES: tuple[Noise, ...] = ("white", "pink", "blurred")
# Reported without a threshold: the block grid is content that rotates with the picture.
JPEG_NOISES: tuple[Noise, ...] = ("jpeg75", "jpeg85", "jpeg95")

CANVASES, TIMES = 8, 8
BLUR = 2.0  # pixels
BANK = 4096  # JPEG runs on the CPU, so its noise is drawn from images made in advance


class NoiseSource:
    """Call it with a count: returns (count, 3, parent, parent) bytes on the generator's device."""

    def __init__(self, kind: Noise, parent: int, generator: torch.Generator) -> None:
        self.kind, self.parent, self.generator = kind, parent, generator
        self.canvases = None if kind == "white" else self._canvases()
        self.bank = None
        if kind.startswith("jpeg"):
            quality = int(kind.removeprefix("jpeg"))
            saved = [through_jpeg(self._windows(256), quality) for _ in range(BANK // 256)]
            self.bank = as_bytes(torch.cat(saved))

    def __call__(self, count: int) -> Tensor:
        if self.bank is not None:
            return self.bank[self._integers(len(self.bank), count)]
        if self.canvases is not None:
            return as_bytes(self._windows(count))
        return as_bytes(self._white(count, self.parent))

    def _white(self, count: int, size: int) -> Tensor:
        device = self.generator.device
        return torch.rand(count, 3, size, size, generator=self.generator, device=device)

    def _integers(self, end: int, count: int) -> Tensor:
        device = self.generator.device
        return torch.randint(end, (count,), generator=self.generator, device=device)

    def _canvases(self) -> Tensor:
        """(CANVASES, 3, TIMES·parent, TIMES·parent) in [0, 1]: mean ½, standard deviation ¼."""
        size = TIMES * self.parent
        canvases = self._white(CANVASES, size) - 0.5
        frequency = torch.fft.fftfreq(size, device=canvases.device)
        radius = (frequency[:, None] ** 2 + frequency**2).sqrt()
        if self.kind == "blurred":
            gain = torch.exp(-2 * (torch.pi * BLUR * radius) ** 2)
        else:  # power 1/f², as in photographs; flat for wavelengths longer than the parent
            gain = 1 / radius.clamp(min=1 / self.parent)
        for image in canvases:  # one by one: transforming all at once would take gigabytes
            image.copy_(torch.fft.ifft2(torch.fft.fft2(image) * gain).real)
        return ((canvases - canvases.mean()) / (4 * canvases.std()) + 0.5).clamp_(0, 1)

    def _windows(self, count: int) -> Tensor:
        canvases = self.canvases
        if canvases is None:
            raise ValueError("White noise has no canvas to cut windows from.")
        free = canvases.shape[-1] - self.parent + 1
        canvas = self._integers(len(canvases), count)[:, None, None]
        side = torch.arange(self.parent, device=canvases.device)
        rows = self._integers(free, count)[:, None, None] + side[:, None]
        columns = self._integers(free, count)[:, None, None] + side
        return canvases[canvas, :, rows, columns].movedim(-1, 1)  # (count, 3, parent, parent)


def as_bytes(noise: Tensor) -> Tensor:
    return (noise * 255).round().byte()
