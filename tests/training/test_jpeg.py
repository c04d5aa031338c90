"""JPEG's rounding without a file: near to what a real save leaves."""

from __future__ import annotations

import pytest
import torch

from radialbeams.training.data.scenes import scene_set
from radialbeams.training.evaluate import through_jpeg
from radialbeams.training.jpeg import SCALES, resaved, resaved_at_scales


@pytest.fixture
def views() -> torch.Tensor:
    return scene_set(3, size=64).images.float() / 255


@pytest.mark.parametrize("quality", [30, 60, 90])
def test_luminance_is_rounded_as_a_real_save_rounds_it(views: torch.Tensor, quality: int) -> None:
    grey = views.mean(1, keepdim=True).expand_as(views)  # where chroma plays no part
    made = resaved(grey, torch.full((3,), float(quality)))
    real = through_jpeg(grey, quality)
    change = (real - grey).abs().mean()
    assert (made - real).abs().mean() < 0.25 * change + 0.003


def test_a_lower_quality_changes_more(views: torch.Tensor) -> None:
    low, high = (
        (resaved(views, torch.full((3,), quality)) - views).abs().mean() for quality in (30.0, 95.0)
    )
    assert low > 2 * high
    assert high < 0.02


def test_each_view_has_a_quality_of_its_own(views: torch.Tensor) -> None:
    both = resaved(views[:2], torch.tensor([30.0, 95.0]))
    torch.testing.assert_close(both[1:], resaved(views[1:2], torch.tensor([95.0])))
    torch.testing.assert_close(both[:1], resaved(views[:1], torch.tensor([30.0])))


@pytest.mark.parametrize("shape", [(2, 1, 20, 20), (1, 3, 57, 57)])
def test_any_size_and_grey_views_keep_their_shape(shape: tuple[int, ...]) -> None:
    assert resaved(torch.rand(shape), torch.full((shape[0],), 80.0)).shape == shape


def test_colour_is_rounded_as_a_real_save_rounds_it(views: torch.Tensor) -> None:
    made, real = resaved(views, torch.full((3,), 75.0)), through_jpeg(views, 75)
    assert (made - real).abs().mean() < 0.5 * (real - views).abs().mean()


def test_a_batch_is_saved_at_every_scale(views: torch.Tensor) -> None:
    batch = views[:1].expand(len(SCALES), -1, -1, -1)
    made = resaved_at_scales(batch, torch.full((len(SCALES),), 40.0))
    assert made.shape == batch.shape
    for one in range(len(SCALES)):
        assert (made[one] - batch[one]).abs().mean() < 0.05  # still the picture
        assert all(not torch.equal(made[one], made[other]) for other in range(one))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_batch_of_any_length_keeps_it(count: int) -> None:
    views = torch.rand(count, 3, 24, 24)
    assert resaved_at_scales(views, torch.full((count,), 80.0)).shape == views.shape
