"""Crooked images: who judges them, which are listed, and how their angles are corrected."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import TINY_RING, easy_images
from folders import picture, plain_folder, save
from PIL import Image
from torch import Tensor

from radialbeams.nn.losses import LossInputs, RingLoss
from radialbeams.nn.rotation import disc, rotate
from radialbeams.training.data import ImageSet
from radialbeams.training.fit import Fit
from radialbeams.training.own import crooked as module
from radialbeams.training.own.crooked import (
    Crooked,
    Judged,
    deal,
    judge,
    listed,
    realigned,
)
from radialbeams.training.own.pixels import read
from radialbeams.training.own.scan import scan
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import LeakfreeViews

pytestmark = pytest.mark.usefixtures("one_thread")
CPU = torch.device("cpu")
RECIPE = Recipe(
    "easy",
    TINY_RING,
    parent_size=54,
    protocol="leakfree",
    batch=16,
    steps=2,
    learning_rate=1e-2,
    schedule="one-cycle",
    average=0.9,
)


def with_turned(images: ImageSet, turns: dict[int, float]) -> ImageSet:
    """Some of them turned counter-clockwise, by degrees."""
    pixels = images.images.clone()
    for row, degrees in turns.items():
        turned = rotate(pixels[row : row + 1].float(), math.radians(degrees), padding="corner")
        pixels[row] = turned[0].round().byte()
    return ImageSet(images.name, pixels, images.keys, images.groups)


# --- folds ---


def test_every_image_is_judged_once_by_a_network_that_did_not_train_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[set[int]] = []
    judged: list[list[int]] = []

    class Watched(Fit):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            trained.append(set(self.rows.tolist()))

    plain = module._answers

    def answers(model: Any, images: ImageSet, rows: np.ndarray, *others: Any) -> Judged:
        judged.append(rows.tolist())
        return plain(model, images, rows, *others)

    monkeypatch.setattr(module, "Fit", Watched)
    monkeypatch.setattr(module, "_answers", answers)
    seen: list[float] = []
    found = judge(
        RECIPE,
        easy_images(20, size=54),
        tmp_path,
        device=CPU,
        folds=3,
        on_progress=seen.append,
    )
    assert sorted(row for rows in judged for row in rows) == list(range(20))
    for others, own in zip(trained, judged, strict=True):
        assert others | set(own) == set(range(20))
        assert others.isdisjoint(own)
    assert len(found.angles) == len(found.confidences) == 20
    assert seen == sorted(seen) and seen[-1] == pytest.approx(1)


def test_folds_are_equally_large() -> None:
    assert sorted(np.bincount(deal(20, 3, seed=0)).tolist()) == [6, 7, 7]
    assert deal(20, 3, seed=0).tolist() != deal(20, 3, seed=1).tolist()


def test_a_number_of_folds_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Expected 2 to 6 folds; got 1"):
        judge(RECIPE, easy_images(6, size=54), tmp_path, device=CPU, folds=1)


# --- judging ---


def brighter_side(model: object, views: Tensor) -> tuple[Tensor, Tensor]:
    """The angle of pictures that are brighter on top, read off without a network."""
    size = views.shape[-1]
    offsets = torch.arange(size) - (size - 1) / 2
    gray = views.mean(1) * disc(size, views.device)
    right = (gray * offsets).sum((1, 2))
    up = (gray * -offsets[:, None]).sum((1, 2))
    return torch.atan2(-right, up) % (2 * math.pi), torch.full((len(views),), 0.9)


def test_the_angle_is_the_turn_that_an_image_shows_counter_clockwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "predict_with", brighter_side)
    turns = {0: 30.0, 1: -100.0, 2: 170.0}
    images = with_turned(easy_images(4, size=54), turns)
    found = module._answers(None, images, np.arange(4), LeakfreeViews(24), CPU)
    np.testing.assert_allclose(found.angles, [30, -100, 170, 0], atol=2)
    np.testing.assert_allclose(found.confidences, 0.9, atol=0.01)


def test_answers_that_disagree_have_no_confidence(monkeypatch: pytest.MonkeyPatch) -> None:
    def always_up(model: object, views: Tensor) -> tuple[Tensor, Tensor]:
        return torch.zeros(len(views)), torch.ones(len(views))

    monkeypatch.setattr(module, "predict_with", always_up)
    images = easy_images(3, size=54)
    found = module._answers(None, images, np.arange(3), LeakfreeViews(24), CPU)
    np.testing.assert_allclose(found.confidences, 1 / module.TURNS, atol=1e-5)


def test_a_few_wrong_turns_do_not_move_the_answer() -> None:
    angles = torch.tensor([[0.50, 0.52, 0.48, 0.50, 0.51, 0.49, -2.0, 3.0]])
    angle, sure = module._agreed(angles, torch.full((1, 8), 0.8))
    assert angle.item() == pytest.approx(0.5, abs=1e-3)
    assert sure.item() == pytest.approx(0.6)


def test_the_sure_and_clearly_crooked_are_listed_the_surest_first() -> None:
    angles = np.array([1.0, -2, 1, 3, -40, 90, 170, 8])
    sure = np.array([0.9, 0.9, 0.9, 0.9, 0.8, 0.2, 0.95, 0.9])
    assert listed(Judged(angles, sure)) == (Crooked(6, 170, 0.95), Crooked(4, -40, 0.8))


def test_a_network_that_is_often_off_lists_only_what_is_far_off() -> None:
    angles = np.array([12.0, -12, 12, -12, 12, 30, -90])
    assert [one.index for one in listed(Judged(angles, np.full(7, 0.9)))] == [6]


@pytest.mark.slow
def test_turned_images_among_upright_ones_are_found(tmp_path: Path) -> None:
    turns = {3: 60.0, 17: 180.0, 29: -120.0, 36: 90.0}
    images = with_turned(easy_images(40, size=54), turns)
    found = listed(judge(RECIPE, images, tmp_path, device=CPU, folds=2, steps=80))
    assert len(found) >= 3
    assert {one.index for one in found} <= set(turns)
    for one in found:
        assert abs((one.angle - turns[one.index] + 180) % 360 - 180) < 15


# --- correcting ---


def test_a_realigned_image_is_read_upright(tmp_path: Path) -> None:
    plain_folder(tmp_path / "photos", 10)
    scene, middle = picture(50, (160, 160)), (32, 32, 128, 128)
    upright = scene.crop(middle)
    turned = scene.rotate(40, Image.Resampling.BICUBIC).crop(middle)
    save(turned, tmp_path / "photos" / "a.png")
    found = scan(tmp_path / "photos")
    rows = [4, 0]  # as they were read: the second one is a.png
    better = realigned(found, rows, (Crooked(1, 40.0, 0.9),))
    assert [image.angle for image in better.images] == [40.0] + [0.0] * 10
    before, after = (read(one, rows, 96, 3, tmp_path / "cache").images for one in (found, better))
    seen = disc(96, CPU).bool() & (torch.arange(96) > 10) & (torch.arange(96) < 85)
    expected = torch.from_numpy(np.asarray(upright).copy()).permute(2, 0, 1)
    off = [(one[1].float() - expected.float()).abs()[:, seen].mean() for one in (before, after)]
    assert off[1] < 3 < 20 < off[0]
    assert (before[0] == after[0]).all()


def test_a_second_correction_is_added_to_the_first(tmp_path: Path) -> None:
    found = scan(plain_folder(tmp_path, 10))
    once = realigned(found, range(10), (Crooked(2, 40.0, 0.9),))
    twice = realigned(once, range(10), (Crooked(2, -5.0, 0.9),))
    assert twice.images[2].angle == 35.0


def test_the_worst_views_of_a_batch_are_not_learned_from() -> None:
    angles = torch.zeros(10)
    angles[3] = math.pi  # turned upside down among upright ones
    logits = torch.zeros(10, 12)
    logits[:, 0] = 5.0  # every answer is "upright"
    logits.requires_grad_()
    given = LossInputs(
        torch.zeros(10, 3, 24, 24),
        angles,
        torch.arange(10),
        lambda: torch.zeros(10, 3, 24, 24),
        None,
        torch.ones(2),
        RingLoss(),
    )
    loss, _ = module.trimmed_loss(lambda views: (logits, torch.zeros(10, 12)), given)
    loss.backward()
    assert logits.grad is not None
    moved = logits.grad.abs().sum(1) > 0
    assert not moved[3]
    assert moved.sum() >= 8
