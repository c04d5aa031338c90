"""Profiles of photos: relative to the truth, turned with the photo, and learned by a student."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import ROOT, easy_images

from radialbeams.nn.losses import LossInputs, RingLoss
from radialbeams.nn.posterior import posterior_loss

sys.path.insert(0, str(ROOT / "studies"))
distil = importlib.import_module("distil")


def test_a_profile_is_relative_to_the_truth_and_turns_with_the_photo() -> None:
    logits = torch.full((1, 72), -20.0)
    logits[0, 40] = 0.0  # an estimate of 200°, and the truth is 190°
    profile = distil.relative(logits, torch.zeros(1, 72), torch.tensor([math.radians(190)]))
    assert profile[0, 2] == pytest.approx(1, abs=1e-4)  # 10° more than the truth
    for bins in (72, 48):
        found = distil.shifted(profile, torch.tensor([math.radians(50)]), bins)  # (1, bins)
        assert found.sum() == pytest.approx(1, abs=1e-5)
        centre = (found[0] * torch.arange(bins)).sum() * (360 / bins)
        assert float(centre) == pytest.approx(60, abs=0.1)


def given(angles: torch.Tensor) -> LossInputs:
    rows = torch.arange(len(angles))
    none = torch.zeros(len(angles), 1, 1, 1)
    return LossInputs(none, angles, rows, lambda: none, None, torch.ones(2), RingLoss())


def test_without_a_share_the_loss_is_the_usual_one() -> None:
    torch.manual_seed(0)
    outputs = (torch.randn(5, 72), torch.randn(5, 72) * 0.1)
    inputs = given(torch.rand(5) * 6)
    flat = torch.full((5, distil.BINS), 1 / distil.BINS)
    usual, _ = posterior_loss(lambda _: outputs, inputs)  # type: ignore[arg-type]
    found, _ = distil.softened(flat, 0.0)(lambda _: outputs, inputs)
    assert torch.allclose(found, usual)


def test_a_flat_profile_makes_a_flat_posterior_cheaper() -> None:
    inputs = given(torch.tensor([1.0]))
    flat = torch.full((1, distil.BINS), 1 / distil.BINS)
    sharp = 20 * torch.cos(torch.arange(72) * (2 * math.pi / 72) - 1.0)[None]
    even = torch.zeros(1, 72)

    def loss(logits: torch.Tensor, share: float) -> float:
        outputs = (logits, torch.zeros_like(logits))
        return float(distil.softened(flat, share)(lambda _: outputs, inputs)[0])

    assert loss(sharp, 0.0) < loss(even, 0.0)
    assert loss(sharp, 1.0) - loss(sharp, 0.0) > loss(even, 1.0) - loss(even, 0.0)


def test_images_without_a_profile_are_named(tmp_path: Path) -> None:
    images = easy_images(3)
    place = tmp_path / "profiles.npz"
    np.savez(place, keys=np.array(images.keys[:2]), profiles=np.ones((2, distil.BINS)))
    with pytest.raises(SystemExit, match=f"1 are missing, such as {images.keys[2]}"):
        distil.in_order(place, images)
    np.savez(place, keys=np.array(images.keys[::-1]), profiles=np.eye(3, distil.BINS))
    assert distil.in_order(place, images)[0, 2] == 1


def test_images_that_use_no_profile_keep_the_narrow_target(tmp_path: Path) -> None:
    images = easy_images(3)
    place = tmp_path / "profiles.npz"
    np.savez(place, keys=np.array(images.keys), profiles=np.eye(3, distil.BINS))
    profiles = distil.in_order(place, images, without=images.keys[1:2])
    assert profiles.any(1).tolist() == [True, False, True]
    torch.manual_seed(0)
    outputs = (torch.randn(3, 72), torch.randn(3, 72) * 0.1)
    inputs = given(torch.rand(3) * 6)
    usual, _ = posterior_loss(lambda _: outputs, inputs)  # type: ignore[arg-type]
    softened, _ = distil.softened(0 * profiles, 0.5)(lambda _: outputs, inputs)
    assert torch.allclose(softened, usual)
    changed, _ = distil.softened(profiles, 0.5)(lambda _: outputs, inputs)
    assert not torch.allclose(changed, usual)
