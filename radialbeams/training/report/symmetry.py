"""Which images have no single up: read from posteriors, and checked against the pixels.

`radialbeams.posterior` defines the symmetry of one posterior: the smallest k whose circular moment
is strong. Here it is taken of many views of one group together, each relative to its true angle,
so that a model which picks one of two equal directions at random shows both.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from radialbeams.nn.posterior import Posterior
from radialbeams.nn.rotation import disc
from radialbeams.posterior import MOMENTS, STRONG

ALIKE = 0.97  # correlation of an image with itself, turned, from which on the two look the same
FOLDS = (6, 5, 4, 3, 2)
RIM = 2  # pixels


def moments(read: Posterior, angles: Tensor) -> Tensor:
    """Complex (N, MOMENTS): the k-th circular moments of each posterior, about its own angle."""
    away = read.angles - angles[:, None]  # (N, bins)
    mass = read.log_probabilities.exp()
    turns = [torch.polar(mass, k * away).sum(-1) for k in range(1, MOMENTS + 1)]
    return torch.stack(turns, dim=-1)


def orders(moments: Tensor, members: Tensor, count: int) -> Tensor:
    """(count,) integers: the symmetry order of each group, from moments (V, MOMENTS) of its views.

    1 = one clear up, k = the same every 360°/k, 0 = no up; a group without views has 0.
    """
    total = moments.new_zeros(count, MOMENTS).index_add_(0, members, moments)
    views = torch.bincount(members, minlength=count).clamp(min=1)
    strong = (total / views[:, None]).abs() >= STRONG
    return torch.where(strong.any(-1), strong.float().argmax(-1) + 1, 0)


def pixel_order(turned: Tensor) -> int:
    """The symmetry that the pixels themselves have, from views (T, C, S, S) at k · 360°/T.

    0 where every turn looks the same, the largest k whose turn by 360°/k does, else 1. T is a
    multiple of 60, so that all of these turns are among the views.
    """
    likeness = self_likeness(turned)  # (T,)
    if bool((likeness >= ALIKE).all()):
        return 0
    count = len(turned)
    for fold in FOLDS:
        if bool((likeness[:: count // fold] >= ALIKE).all()):
            return fold
    return 1


def self_likeness(turned: Tensor) -> Tensor:
    """(T,) correlations of the pixels of each view with those of the first.

    Only inside the disc, and not on its rim, where a rotation mixes in what lies outside.
    """
    inside = F.pad(disc(turned.shape[-1] - 2 * RIM, turned.device), (RIM,) * 4).bool()
    pixels = turned[..., inside].flatten(1).double()  # (T, C · pixels)
    pixels = pixels - pixels.mean(1, keepdim=True)
    length = pixels.norm(dim=1)
    if bool(length[0] < 1e-6):  # one plain colour
        return torch.ones(len(turned), dtype=torch.float64, device=turned.device)
    likeness: Tensor = (pixels @ pixels[0]) / (length * length[0]).clamp(min=1e-12)
    return likeness
