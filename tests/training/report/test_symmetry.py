"""Symmetry of posteriors, of groups of views, and of pixels."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from radialbeams.nn.posterior import Posterior, symmetry
from radialbeams.nn.rotation import rotate
from radialbeams.training.report.symmetry import moments, orders, pixel_order

BINS = 48


def peaks(*degrees: float) -> Tensor:
    """(1, BINS) of log-probabilities: equal mass at these angles."""
    mass = torch.full((1, BINS), 1e-6)
    mass[0, [round(d * BINS / 360) % BINS for d in degrees]] = 1.0
    return (mass / mass.sum()).log()


def posteriors(*rows: Tensor) -> Posterior:
    angles = torch.arange(BINS) * (2 * math.pi / BINS)
    return Posterior(torch.cat(rows), angles.expand(len(rows), -1))


def test_the_order_of_a_group_is_the_symmetry_of_its_mixture() -> None:
    rng = torch.Generator().manual_seed(0)
    logits = 6 * torch.randn(60, BINS, generator=rng)
    angles = torch.rand(60, generator=rng) * 2 * math.pi
    members = torch.arange(60) % 5
    read = posteriors(logits.log_softmax(-1))
    read = Posterior(logits.log_softmax(-1), read.angles.expand(60, -1))
    found = orders(moments(read, angles), members, 5)
    for group in range(5):
        mine = members == group
        mixture = Posterior(
            (read.log_probabilities[mine] - math.log(12)).flatten()[None],
            (read.angles[mine] - angles[mine, None]).flatten()[None],
        )
        assert found[group] == symmetry(mixture)[0]


@pytest.mark.parametrize("fold", [1, 2, 3, 4, 6])
def test_a_posterior_with_equal_peaks_has_their_number(fold: int) -> None:
    read = posteriors(peaks(*(360 * k / fold for k in range(fold))))
    assert orders(moments(read, torch.zeros(1)), torch.zeros(1).long(), 1).tolist() == [fold]


def test_a_model_that_picks_one_of_two_ways_at_random_is_found_out() -> None:
    """Each posterior has one sure peak; only together they show that there are two."""
    read = posteriors(peaks(0), peaks(180), peaks(0), peaks(180))
    assert symmetry(read).tolist() == [1, 1, 1, 1]
    found = orders(moments(read, torch.zeros(4)), torch.zeros(4).long(), 1)
    assert found.tolist() == [2]


def test_a_flat_posterior_has_no_up() -> None:
    read = posteriors(torch.zeros(1, BINS).log_softmax(-1))
    assert orders(moments(read, torch.zeros(1)), torch.zeros(1).long(), 2).tolist() == [0, 0]


def turned(image: Tensor) -> Tensor:
    angles = torch.arange(60) * (2 * math.pi / 60)
    return rotate(image.expand(60, -1, -1, -1), angles)


def shape(fold: int, size: int = 65) -> Tensor:
    """A smooth flower of so many petals; 0 is a ring, 1 has one petal."""
    y, x = torch.meshgrid(*[torch.arange(size) - (size - 1) / 2] * 2, indexing="ij")
    radius, angle = torch.hypot(x, y) / size, torch.atan2(y, x)
    petals = torch.cos(fold * angle) * radius if fold else torch.zeros_like(radius)
    return (0.5 + petals - 0.6 * (radius - 0.25) ** 2).clamp(0, 1)[None, None]


@pytest.mark.parametrize("fold", [0, 1, 2, 3, 4, 5, 6])
def test_the_symmetry_of_pixels_is_found(fold: int) -> None:
    assert pixel_order(turned(shape(fold))) == fold


def test_a_blank_image_looks_the_same_at_every_angle() -> None:
    assert pixel_order(torch.full((60, 3, 9, 9), 0.4)) == 0
