"""Augmentation of training views: geometry, colour, blur, noise, filled corners and JPEG.

Geometric changes are part of the single resampling of the view and never make the parent's border
visible. Every random number comes from a table of uniform numbers with one row per image and epoch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from radialbeams.nn.rotation import REACH
from radialbeams.training.jpeg import resaved_at_scales

# Columns of that table.
MIRRORED, ZOOMED, LONGER, AXIS, DIRECTION, REACHED, BLURRED, SOFTNESS, GRAYED, GAMMA = range(10)
GAINS = 10  # brightness, then one column for each of three channels
NOISY, COLOURED = 14, 15
COLOUR = 16  # three columns
FILLED = 19
CORNERS = (20, 22)  # two columns each: direction and distance
SAVED, QUALITY = 24, 25
COLUMNS = 26

LOWEST_QUALITY, HIGHEST_QUALITY = 30, 95  # of JPEG


@dataclass(frozen=True)
class Augmentation:
    """The strength of each augmentation; 0 turns it off."""

    mirror: bool = False  # flips half of the upright images left to right
    zoom: float = 0.0  # up to 1 + zoom; the centre moves as far as the zoom allows
    aspect: float = 0.0  # stretches one axis, by up to 1 + aspect
    jitter: float = 0.0  # multiplies brightness and each channel by up to e^±jitter
    gamma: float = 0.0  # exponent, up to e^±gamma
    gray: float = 0.0  # share of views that become gray
    blur: float = 0.0  # share of views that are blurred slightly
    noise: float = 0.0  # largest standard deviation
    fill: float = 0.0  # share of views with a filled or black corner inside the disc
    jpeg: float = 0.0  # share of views that get JPEG artefacts

    @property
    def active(self) -> bool:
        return self != Augmentation()

    def mirrored(self, parents: Tensor, uniform: Tensor) -> Tensor:
        """Flips half of the parents left to right; they stay upright."""
        if not self.mirror:
            return parents
        return torch.where(
            (uniform[:, MIRRORED] < 0.5)[:, None, None, None], parents.flip(-1), parents
        )

    def geometry(
        self, uniform: Tensor, reach: float = REACH
    ) -> tuple[Tensor | None, Tensor | None]:
        """(N, COLUMNS) → zoom (N, 2) ≥ 1 and shift (N, 2) that keep the disc within `reach`."""
        if not (self.zoom or self.aspect):
            return None, None
        zoom = 1 + self.zoom * uniform[:, ZOOMED, None]
        stretch = 1 + self.aspect * uniform[:, LONGER, None]
        axes = torch.where(
            uniform[:, AXIS, None] < 0.5,
            torch.cat((stretch, torch.ones_like(stretch)), 1),
            torch.cat((torch.ones_like(stretch), stretch), 1),
        )
        room = reach * (1 - 1 / zoom)
        direction = 2 * math.pi * uniform[:, DIRECTION, None]
        distance = room * uniform[:, REACHED, None].sqrt()
        shift = torch.cat((distance * torch.cos(direction), distance * torch.sin(direction)), 1)
        return zoom * axes, shift

    def photometric(self, views: Tensor, uniform: Tensor, noise: Tensor | None) -> Tensor:
        """Views (N, C, S, S) in [0, 1] → the same shape and range; `noise` is standard normal."""
        channels = views.shape[1]
        if self.fill:
            views = self._filled(views, uniform)
        if self.blur:
            views = _softened(views, (uniform[:, BLURRED] < self.blur) * uniform[:, SOFTNESS])
        if self.gray:
            mean = views.mean(1, keepdim=True).expand_as(views)
            views = torch.where((uniform[:, GRAYED] < self.gray)[:, None, None, None], mean, views)
        if self.gamma:
            power = ((2 * uniform[:, GAMMA] - 1) * self.gamma).exp()
            views = views.clamp(1e-4, 1).pow(power[:, None, None, None])
        if self.jitter:
            gains = ((2 * uniform[:, GAINS : GAINS + 1 + channels] - 1) * self.jitter).exp()
            views = views * (gains[:, :1] * gains[:, 1:].pow(math.sqrt(0.5)))[:, :, None, None]
        if self.noise and noise is not None:
            views = views + noise * (self.noise * uniform[:, NOISY])[:, None, None, None]
        views = views.clamp(0, 1)
        return self._saved(views, uniform) if self.jpeg else views

    def _saved(self, views: Tensor, uniform: Tensor) -> Tensor:
        quality = LOWEST_QUALITY + (HIGHEST_QUALITY - LOWEST_QUALITY) * uniform[:, QUALITY]
        chosen = (uniform[:, SAVED] < self.jpeg)[:, None, None, None]
        return torch.where(chosen, resaved_at_scales(views, quality), views)

    def _filled(self, views: Tensor, uniform: Tensor) -> Tensor:
        """Cuts off up to two corners along random lines, so that a filled corner tells no angle."""
        offsets = torch.linspace(-1, 1, views.shape[-1], device=views.device)
        colour = torch.where(
            (uniform[:, COLOURED] < 0.5)[:, None], uniform[:, COLOUR : COLOUR + 3], 0.0
        )
        colour = colour[:, : views.shape[1], None, None]
        chosen = uniform[:, FILLED] < self.fill
        for corner in CORNERS:
            angle = 2 * math.pi * uniform[:, corner, None, None]
            side = offsets * torch.cos(angle) + offsets[:, None] * torch.sin(angle)  # (N, S, S)
            beyond = side > 0.55 + 0.5 * uniform[:, corner + 1, None, None]
            views = torch.where((beyond & chosen[:, None, None])[:, None], colour, views)
        return views


def _softened(views: Tensor, share: Tensor) -> Tensor:
    """Mixes each pixel with the mean of its 3 × 3 neighbourhood."""
    mean = torch.nn.functional.avg_pool2d(views, 3, 1, 1, count_include_pad=False)
    return torch.lerp(views, mean, share[:, None, None, None])
