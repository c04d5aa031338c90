"""Training on pre-rotated images: each keeps its angle, and nothing is rendered."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from conftest import SIZE, easy_images

from radialbeams.nn.bic import BICConfig
from radialbeams.nn.rotation import rotate
from radialbeams.training.data import ImageSet
from radialbeams.training.fit import Fit, Progress
from radialbeams.training.prerotated import PREROTATED, estimated_turns, turned_errors, turns_of
from radialbeams.training.recipe import Recipe


def turned_images(count: int) -> ImageSet:
    upright = easy_images(count)
    degrees = tuple(float(1 + 20 * (i % 18)) for i in range(count))
    turned = rotate(upright.images / 255, torch.deg2rad(torch.tensor(degrees)))
    pixels = (turned * 255).round().byte()
    return ImageSet("turned", pixels, upright.keys, upright.groups, degrees)


def recipe(steps: int) -> Recipe:
    model = BICConfig(view_size=SIZE, beam_length=12, num_beams=8, latent=16, lstm_layers=1)
    return Recipe(
        "turned", model, parent_size=SIZE, batch=12, steps=steps, learning_rate=3e-3, average=0.0
    )


def fit(images: ImageSet, folder: Path, steps: int) -> Fit:
    cpu = torch.device("cpu")
    return Fit(recipe(steps), images, folder, device=cpu, parts=PREROTATED)


def test_every_image_keeps_its_own_angle(tmp_path: Path) -> None:
    images = turned_images(24)
    batches = fit(images, tmp_path, 4)._batches()
    for _ in range(4):
        _, batch = next(batches)
        torch.testing.assert_close(batch.angles, turns_of(images)[batch.rows])


def test_it_learns_and_is_measured(tmp_path: Path) -> None:
    images = turned_images(36)
    run = fit(images, tmp_path, 60)
    before = turned_errors(run.averaged(), images, run.device)
    run.run()
    after = turned_errors(run.averaged(), images, run.device)
    assert after.mean < 0.6 * before.mean
    assert set(after.groups) == {"even", "odd"}
    found = estimated_turns(run.averaged(), images, run.device, batch=7)
    assert found.shape == (36,) and found.min() >= 0 and found.max() < 2 * math.pi


def test_killed_and_resumed_it_equals_an_undisturbed_run(tmp_path: Path, one_thread: None) -> None:
    images = turned_images(24)
    whole = fit(images, tmp_path / "whole", 6)
    whole.run()
    half = fit(images, tmp_path / "half", 6)

    def stop(progress: Progress) -> None:
        if progress.step == 3:
            raise KeyboardInterrupt

    half.save_seconds = 0
    with pytest.raises(KeyboardInterrupt):
        half.run(stop)
    again = fit(images, tmp_path / "half", 6)
    assert 0 < again.at.step < 6
    again.run()
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name])


def test_upright_images_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Expected pre-rotated images.*leave"):
        fit(easy_images(4), tmp_path, 1)
