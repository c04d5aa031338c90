"""Random views of pages for the quarter network, made on the device in one resample.

Skew, zoom, stretch, shift and perspective are one projective map. Sampling at twice the size and
halving keeps text free of aliasing. Contrast, inversion, blur, lost pixels and noise follow.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F


def page_views(pages: Tensor, size: int, generator: torch.Generator, strength: float = 1) -> Tensor:
    """(N, P, P) uint8 → (N, 1, size, size) in [0, 1]; strength 0 only scales."""
    images = pages[:, None].float() / 255
    if not strength:
        return F.interpolate(images, (size, size), mode="bilinear", antialias=True).clamp(0, 1)
    views = _warped(images, size, generator, strength)
    return _developed(views, generator, strength)


def _uniform(like: Tensor, generator: torch.Generator, low: float = 0, high: float = 1) -> Tensor:
    """(N, 1, 1, 1) numbers, one for each image."""
    drawn = torch.rand(len(like), 1, 1, 1, device=like.device, generator=generator)
    return low + (high - low) * drawn


def _warped(images: Tensor, size: int, generator: torch.Generator, strength: float) -> Tensor:
    count, device = len(images), images.device
    draw = torch.rand(count, 9, device=device, generator=generator) * 2 - 1  # in [−1, 1]
    skew = torch.where(draw[:, 8] > 0.7, 8.0, 4.0) * draw[:, 0] * strength * math.pi / 180
    zoom = torch.exp(draw[:, 1] * 0.3 * strength - 0.05)  # of the view, so below 1 is closer
    stretch = torch.exp(draw[:, 2] * 0.1 * strength)
    shift = draw[:, 3:5] * 0.12 * strength
    tilt = draw[:, 5:7] * 0.12 * strength * (draw[:, 7:8] > 0)
    line = (torch.arange(2 * size, device=device) + 0.5) / size - 1
    y, x = torch.meshgrid(line, line, indexing="ij")  # (2S, 2S) in [−1, 1]
    depth = 1 + tilt[:, 0, None, None] * x + tilt[:, 1, None, None] * y
    x, y = x / depth * zoom[:, None, None], y / depth * (zoom * stretch)[:, None, None]
    cos, sin = skew.cos()[:, None, None], skew.sin()[:, None, None]
    across = x * cos - y * sin + shift[:, 0, None, None]
    down = x * sin + y * cos + shift[:, 1, None, None]
    grid = torch.stack((across, down), -1)  # (N, 2S, 2S, 2)
    outside = _outside(images, generator)
    views = F.grid_sample(images - outside, grid, mode="bilinear", align_corners=False) + outside
    return F.avg_pool2d(views, 2)


def _outside(images: Tensor, generator: torch.Generator) -> Tensor:
    """(N, 1, 1, 1) gray beyond the page: mostly the rim's, else black, white or any."""
    rim = torch.cat((images[..., 0], images[..., -1], images[..., 0, :], images[..., -1, :]), -1)
    pick, gray = _uniform(images, generator), _uniform(images, generator)
    shade = rim.median(-1).values[..., None, None]
    shade = torch.where(pick < 0.3, gray.round(), shade)  # black or white
    return torch.where(pick < 0.1, gray, shade)


def _developed(views: Tensor, generator: torch.Generator, strength: float) -> Tensor:
    size = views.shape[-1]
    chosen = _uniform(views, generator) < 0.3 * strength
    sigma = 0.4 + 0.9 * torch.rand((), generator=generator, device=views.device)
    views = torch.where(chosen, _blurred(views, sigma), views)
    lost = _uniform(views, generator) < 0.15 * strength
    share = (0.5, 0.6, 0.75)[int(torch.randint(3, (), generator=generator, device=views.device))]
    small = F.interpolate(views, scale_factor=share, mode="bilinear", antialias=True)
    views = torch.where(lost, F.interpolate(small, (size, size), mode="bilinear"), views)
    views = views.clamp(1e-4, 1) ** torch.exp(_uniform(views, generator, -0.5, 0.5) * strength)
    views = torch.where(_uniform(views, generator) < 0.12 * strength, 1 - views, views)
    noise = torch.randn(views.shape, device=views.device, generator=generator)
    scale = _uniform(views, generator, -0.06, 0.06).clamp_min(0) * strength
    low, high = _uniform(views, generator, 0, 0.2), _uniform(views, generator, 0.6, 1)
    return (low + (high - low) * views + noise * scale).clamp(0, 1)


def _blurred(views: Tensor, sigma: Tensor) -> Tensor:
    places = torch.arange(-3, 4, device=views.device)
    kernel = torch.exp(-0.5 * (places / sigma) ** 2)
    kernel = kernel / kernel.sum()
    views = F.conv2d(F.pad(views, (3, 3, 3, 3), mode="replicate"), kernel[None, None, None])
    return F.conv2d(views, kernel[None, None, :, None])
