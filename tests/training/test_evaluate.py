"""The measure: errors the shortest way round, of anything that maps views to angles."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from radialbeams.nn.bic import BIC
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import (
    Predict,
    evaluate,
    predict_with,
    summarise,
    through_jpeg,
)
from radialbeams.training.views import PaperViews, draw_angles

# Threads cost more than they give on views this small.
pytestmark = pytest.mark.usefixtures("one_thread")

VIEWS = PaperViews()


def answers(count: int, seeds: int = 3, off: float = 0.0, batch: int = 128) -> Predict:
    """Says the true angle, and `off` radians more, of whatever it is shown.

    A batch of images is shown at its angles of all seeds before the next one is.
    """
    drawn = torch.stack([draw_angles("evaluation", seed, 0, count) for seed in range(seeds)])
    turns: Iterator[float] = iter(
        torch.cat([part.flatten() for part in drawn.split(batch, dim=1)]).tolist()
    )
    return lambda views: torch.tensor([next(turns) + off for _ in views])


def test_exact_answers_have_no_error(pictures: ImageSet) -> None:
    found = evaluate(answers(40, batch=7), pictures, VIEWS, batch=7)
    assert found.mean == found.median == found.p95 == found.flips == 0
    assert found.paper_equivalent == pytest.approx(0, abs=1e-6)
    assert found.within_5 == found.within_10 == 1


def test_constant_answers_are_off_by_a_right_angle_on_average(pictures: ImageSet) -> None:
    found = evaluate(lambda views: torch.full((len(views),), 1.0), pictures, VIEWS, seeds=25)
    assert found.mean == pytest.approx(90, abs=5)
    assert found.paper_equivalent == pytest.approx(90, abs=5)
    assert found.flips == pytest.approx(1 / 6, abs=0.05)
    assert found.within_10 == pytest.approx(1 / 18, abs=0.03)


@pytest.mark.parametrize("off", [3.0, -3.0, 3.0 + 360, 3.0 - 720])
def test_errors_go_the_shortest_way_round(pictures: ImageSet, off: float) -> None:
    found = evaluate(answers(40, off=math.radians(off)), pictures, VIEWS)
    assert found.mean == pytest.approx(3, abs=1e-3)
    assert (found.within_5, found.flips) == (1, 0)


def test_one_flip_in_a_hundred_is_eleven_degrees_to_the_paper() -> None:
    errors = torch.zeros(100)
    errors[0] = math.pi
    found = summarise(errors[None])
    assert found.paper_equivalent == pytest.approx(11.48, abs=0.005)
    assert (found.mean, found.flips) == (pytest.approx(1.8), 0.01)
    assert found.median == 0


def test_every_figure_of_known_errors_is_what_it_is_called() -> None:
    found = summarise(torch.deg2rad(torch.arange(1, 181).double())[None])
    assert found.n == 180
    assert found.mean == pytest.approx(90.5)
    assert found.median == pytest.approx(90.5)
    assert found.p95 == pytest.approx(1 + 0.95 * 179)
    assert found.within_5 == pytest.approx(5 / 180)
    assert found.within_10 == pytest.approx(10 / 180)
    assert found.flips == pytest.approx(31 / 180)  # 150° itself is one


def test_groups_have_the_means_of_their_members(pictures: ImageSet) -> None:
    assert summarise(torch.deg2rad(torch.tensor([[1.0, 2.0, 6.0]])), ["b", "a", "b"]).groups == {
        "a": pytest.approx(2, abs=1e-5),
        "b": pytest.approx(3.5, abs=1e-5),
    }
    exact = answers(40, seeds=2)

    def wrong_on_odd(views: Tensor) -> Tensor:
        return exact(views) + torch.arange(len(views)) % 2  # one radian, for the odd rows

    found = evaluate(wrong_on_odd, pictures, VIEWS, seeds=2, by_group=True)
    assert found.groups == {
        "even": pytest.approx(0, abs=1e-4),
        "odd": pytest.approx(math.degrees(1), abs=1e-3),
    }
    assert evaluate(answers(40), pictures, VIEWS).groups == {}


def test_every_image_is_measured_once_a_seed_in_any_batches(pictures: ImageSet) -> None:
    shown: list[int] = []

    def predict(views: Tensor) -> Tensor:
        shown.append(len(views))
        return torch.zeros(len(views))

    found = evaluate(predict, pictures, VIEWS, seeds=2, batch=16)
    assert found.n == 80
    assert shown == [16, 16, 16, 16, 8, 8]  # each image at all its angles


def test_the_figures_do_not_depend_on_chance_or_on_batches(
    pictures: ImageSet, tiny_model: BIC
) -> None:
    def predict(views: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        return predict_with(tiny_model, views)

    first = evaluate(predict, pictures, VIEWS)
    torch.manual_seed(99)
    assert evaluate(predict, pictures, VIEWS) == first
    other = evaluate(predict, pictures, VIEWS, batch=7)
    assert other.mean == pytest.approx(first.mean, abs=1e-3)
    assert evaluate(predict, pictures, VIEWS, seeds=1).mean != first.mean


def test_anything_that_maps_views_to_angles_can_be_measured(pictures: ImageSet) -> None:
    """Numpy that looks for the bright side: no torch, no model."""

    def brightest(views: Tensor) -> Tensor:
        light = views.numpy().mean(axis=1)
        y, x = np.mgrid[: light.shape[1], : light.shape[2]] - (light.shape[1] - 1) / 2
        right, up = (light * x).sum(axis=(1, 2)), -(light * y).sum(axis=(1, 2))
        return torch.from_numpy(np.arctan2(up, right) - np.pi / 2)

    assert evaluate(brightest, pictures, VIEWS).mean < 3


def test_the_model_gives_angles_on_the_circle(tiny_model: BIC) -> None:
    found = predict_with(tiny_model, torch.rand(9, 3, 40, 40))
    assert found.shape == (9,) and not found.requires_grad
    assert (found >= 0).all() and (found < 2 * math.pi).all()


@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_changes_pixels_a_little_and_not_the_shape(channels: int) -> None:
    rows = torch.linspace(0, 1, 40)
    views = (rows[:, None] * rows[None, :]).expand(2, channels, 40, 40).contiguous()
    saved = through_jpeg(views, 90)
    assert saved.shape == views.shape and saved.dtype == torch.float32
    difference = (saved - views).abs()
    assert 0 < difference.max() < 0.05
    assert (through_jpeg(views, 20) - views).abs().mean() > difference.mean()


def test_colour_is_stored_at_half_the_resolution() -> None:
    stripes = torch.zeros(1, 3, 32, 32)
    stripes[:, 0, :, ::2] = 1  # red, each second column
    saved = through_jpeg(stripes, 95)
    assert (saved - stripes).abs().mean() > 0.1
    gray = stripes[:, :1].expand(-1, 3, -1, -1)
    assert (through_jpeg(gray, 95) - gray).abs().mean() < 0.02


def shown_views(pictures: ImageSet, jpeg: int | None) -> Tensor:
    shown: list[Tensor] = []

    def look(views: Tensor) -> Tensor:
        shown.append(views)
        return torch.zeros(40)

    evaluate(look, pictures, VIEWS, seeds=1, jpeg=jpeg)
    return torch.cat(shown)


def test_with_jpeg_the_model_is_shown_what_was_saved(pictures: ImageSet) -> None:
    plain, saved = shown_views(pictures, None), shown_views(pictures, 90)
    assert torch.equal(saved, through_jpeg(plain, 90))
    assert not torch.equal(saved, plain)


def test_progress_ends_at_the_number_of_views(pictures: ImageSet) -> None:
    seen: list[tuple[int, int]] = []
    evaluate(
        answers(40), pictures, VIEWS, batch=16, on_batch=lambda done, of: seen.append((done, of))
    )
    assert seen[-1] == (120, 120)


def test_a_measure_without_seeds_is_refused_with_a_sentence(pictures: ImageSet) -> None:
    with pytest.raises(ValueError, match="seeds"):
        evaluate(answers(40), pictures, VIEWS, seeds=0)
