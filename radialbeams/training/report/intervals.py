"""Intervals: of means by the bootstrap for many cells at once, and of a share by a formula."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

SAMPLES = 400
NORMAL = 1.96  # standard deviations of a 95% interval


class Cell(NamedTuple):
    """A mean, its 95 % interval, and how many images and views it rests on."""

    images: int
    views: int
    mean: float
    low: float
    high: float


def cells(values: Tensor, members: Tensor, count: int) -> list[Cell]:
    """The means of values (seeds, N) in `count` cells; `members` (seeds, N) says which cell.

    Images are drawn, not views: the views of one image go wrong together. Each sample weighs an
    image by a Poisson number, which draws all cells in one product. A cell of fewer than two
    images has no interval: it reaches from its mean to its mean.
    """
    seeds, images = values.shape
    rng = np.random.default_rng(0)
    weights = torch.from_numpy(rng.poisson(1.0, (SAMPLES, images)).astype(np.float32))
    flat, where = values.flatten().float(), members.flatten()
    of_view = weights.repeat(1, seeds)  # (SAMPLES, seeds · N)
    total = torch.zeros(SAMPLES, count).index_add_(1, where, of_view * flat)
    weight = torch.zeros(SAMPLES, count).index_add_(1, where, of_view)
    drawn = torch.where(weight > 0, total / weight.clamp(min=1), torch.nan)
    views = torch.bincount(where, minlength=count)
    sums = torch.zeros(count, dtype=torch.float64).index_add_(0, where, flat.double())
    means = sums / views.clamp(min=1)
    low, high = (drawn.nanquantile(q, dim=0) for q in (0.025, 0.975))
    distinct = _distinct(members, count)
    return [
        Cell(n, v, m, *((lo, hi) if n > 1 else (m, m)))
        for n, v, m, lo, hi in zip(
            distinct.tolist(),
            views.tolist(),
            means.tolist(),
            low.tolist(),
            high.tolist(),
            strict=True,
        )
    ]


def share_interval(share: float, count: float) -> tuple[float, float]:
    """The 95% interval of a share of `count` images, by Wilson's formula: wide at 0% and 100%."""
    middle = share + NORMAL**2 / (2 * count)
    half = NORMAL * math.sqrt(share * (1 - share) / count + NORMAL**2 / (4 * count**2))
    scale = 1 + NORMAL**2 / count
    return max(0.0, (middle - half) / scale), (middle + half) / scale


def _distinct(members: Tensor, count: int) -> Tensor:
    """(count,) how many images have a view in each cell."""
    images = members.shape[1]
    pairs = torch.unique(members * images + torch.arange(images))
    return torch.bincount(pairs // images, minlength=count)
