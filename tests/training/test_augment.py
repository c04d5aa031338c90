"""Augmentation never brings the parent's border into view, and can be repeated."""

from __future__ import annotations

import math

import pytest
import torch

from radialbeams.nn.rotation import REACH, disc
from radialbeams.training.augment import COLUMNS, FILLED, Augmentation
from radialbeams.training.views import LeakfreeViews

STRONG = Augmentation(
    mirror=True,
    zoom=0.4,
    aspect=0.3,
    jitter=0.3,
    gamma=0.3,
    gray=0.3,
    blur=0.5,
    noise=0.05,
    fill=0.5,
)


def uniform(count: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(count, COLUMNS, generator=torch.Generator().manual_seed(seed))


def test_the_disc_stays_within_reach_of_the_parent() -> None:
    zoom, shift = STRONG.geometry(uniform(5000))
    assert zoom is not None and shift is not None
    assert zoom.min() >= 1
    angles = torch.linspace(0, 2 * math.pi, 90)
    rim = REACH * torch.stack((torch.cos(angles), torch.sin(angles)), -1)  # of the disc
    places = rim / zoom[:, None] + shift[:, None]
    assert places.norm(dim=-1).max() <= REACH + 1e-6


def test_no_border_of_the_parent_is_seen() -> None:
    """A parent that is white only in its outer tenth leaves every augmented view black."""
    parents = torch.full((64, 3, 128, 128), 255, dtype=torch.uint8)
    offsets = torch.arange(128) - 63.5
    inside = (offsets**2 + offsets[:, None] ** 2).sqrt() <= 0.97 * 64
    parents[:, :, inside] = 0
    zoom, shift = STRONG.geometry(uniform(64))
    views = LeakfreeViews()
    seen = views.turn(views.prepare(parents), torch.rand(64) * 6.28, zoom, shift)
    assert seen.abs().max() < 0.02
    outside = views.turn(views.prepare(parents), torch.rand(64), torch.full((64, 2), 0.8), shift)
    assert outside.abs().max() > 0.5  # zooming out would show it


def test_without_settings_nothing_changes() -> None:
    views = torch.rand(4, 3, 9, 9)
    none = Augmentation()
    assert not none.active
    assert none.geometry(uniform(4)) == (None, None)
    assert torch.equal(none.photometric(views, uniform(4), None), views)
    assert none.mirrored(views, uniform(4)) is views


def test_half_of_the_images_are_mirrored() -> None:
    images = torch.arange(2000 * 9).reshape(2000, 1, 3, 3)
    mirrored = STRONG.mirrored(images, uniform(2000))
    flipped = (mirrored == images.flip(-1)).all(-1).all(-1).all(-1)
    same = (mirrored == images).all(-1).all(-1).all(-1)
    assert (flipped | same).all()
    assert 0.45 < flipped.float().mean() < 0.55


def test_views_stay_in_range_and_the_same_numbers_give_the_same_views() -> None:
    views = torch.rand(64, 3, 20, 20)
    noise = torch.randn(64, 3, 20, 20)
    first, second = (STRONG.photometric(views, uniform(64), noise) for _ in range(2))
    assert torch.equal(first, second)
    assert first.min() >= 0 and first.max() <= 1
    assert not torch.equal(first, STRONG.photometric(views, uniform(64, 1), noise))


@pytest.mark.parametrize("channels", [1, 3])
def test_fill_reaches_into_the_disc_of_the_requested_share(channels: int) -> None:
    views = torch.full((1000, channels, 41, 41), 0.5)
    filled = Augmentation(fill=0.4).photometric(views, uniform(1000), None)
    changed = ((filled != views) & (disc(41) > 0)).flatten(1).any(1)
    chosen = uniform(1000)[:, FILLED] < 0.4
    assert not changed[~chosen].any()
    assert changed[chosen].float().mean() > 0.9
