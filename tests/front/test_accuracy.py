"""Accuracy over the angle: every line by what it should do, with classifiers that are simple."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from conftest import easy_images
from torch import Tensor

from radialbeams.front.accuracy import (
    TURNS,
    AngleEstimates,
    Task,
    average_over_the_grid,
    finder,
    fit_head,
    lost_upright,
    rounded,
    share_of_the_gap,
    tally,
    turned_back,
)
from radialbeams.front.module import Canonicalizer
from radialbeams.nn.angles import angular_error, to_unit
from radialbeams.nn.bic import BICConfig
from radialbeams.nn.rotation import rotate

PARENTS = easy_images(12).images / 255


def brighter_half(images: Tensor) -> Tensor:
    """Scores of: the upper half is the brighter one, the lower half is."""
    half = images.shape[-2] // 2
    means = torch.stack(
        (images[..., :half, :].mean((1, 2, 3)), images[..., half:, :].mean((1, 2, 3)))
    )
    return 50 * means.T


def brightness(images: Tensor) -> Tensor:
    """Scores of: bright in the middle, dark there. A turn changes neither."""
    middle = images[..., 10:-10, 10:-10].mean((1, 2, 3))
    return 50 * torch.stack((middle, torch.full_like(middle, PARENTS.mean().item())), dim=1)


def task(front: dict[str, object]) -> Task:
    """Upright images, brighter above: the label is 0, and every turn beyond 90° makes it 1."""
    return Task(
        "halves",
        torch.zeros(len(PARENTS), dtype=torch.long),
        lambda rows, angles: rotate(PARENTS[rows], angles),
        lambda images: images,
        brighter_half,
        front,  # type: ignore[arg-type]
        0.0,
    )


def knowing(angle: Tensor, applied: bool = True) -> object:
    return lambda images: AngleEstimates(angle[: len(images)], torch.full((len(images),), applied))


ROWS = torch.arange(12)
UPSIDE_DOWN = torch.full((12,), math.pi)


def test_the_truth_is_the_ceiling_and_plain_falls() -> None:
    found = tally(task({}), ROWS, UPSIDE_DOWN)
    assert found.accuracies() == {"plain": 0.0, "ceiling": 1.0}


def test_a_finder_that_knows_reaches_the_ceiling_and_one_that_abstains_stays_plain() -> None:
    sure = tally(task({"ring": knowing(UPSIDE_DOWN)}), ROWS, UPSIDE_DOWN)
    assert sure.accuracies() == {"plain": 0.0, "ring": 1.0, "abstain": 1.0, "ceiling": 1.0}
    shy = tally(task({"ring": knowing(UPSIDE_DOWN, False)}), ROWS, UPSIDE_DOWN)
    assert shy.accuracies() == {"plain": 0.0, "ring": 1.0, "abstain": 0.0, "ceiling": 1.0}
    assert shy.errors()["ring"] == {"mean": 0.0, "median": 0.0, "within_10": 1.0, "left_alone": 1.0}


def test_a_finder_of_any_name_is_reported() -> None:
    shy = tally(task({"general": knowing(UPSIDE_DOWN, False)}), ROWS, UPSIDE_DOWN)
    expected = {"plain": 0.0, "general": 1.0, "abstain": 0.0, "ceiling": 1.0}
    assert list(shy.accuracies().items()) == list(expected.items())


def test_what_is_lost_upright() -> None:
    wrong = torch.where(torch.arange(12) < 3, math.pi, 0.0)
    upright = tally(task({"ring": knowing(wrong)}), ROWS, torch.zeros(12))
    assert lost_upright(upright) == {"ring": 0.25, "abstain": 0.25}
    upright = tally(task({"ring": knowing(wrong, False)}), ROWS, torch.zeros(12))
    assert lost_upright(upright) == {"ring": 0.25, "abstain": 0.0}


def test_averaging_over_the_grid_is_averaging() -> None:
    grid = [math.radians(1 + 20 * k) for k in range(18)]
    tallies = [tally(task({}), ROWS, torch.full((12,), angle)) for angle in grid]
    average_over_the_grid(tallies)
    expected = sum(tallies[(4 + 3 * k) % 18].probabilities for k in range(TURNS))
    assert isinstance(expected, Tensor)
    assert torch.equal(tallies[4].predicted["averaged"], expected.argmax(-1))
    with pytest.raises(ValueError, match="a multiple of 6 angles; got 17"):
        average_over_the_grid(tallies[:17])


def test_averaging_by_the_grid_and_by_turning_again_agree() -> None:
    by_brightness = replace(task({}), classify=brightness)
    grid = [math.radians(1 + 20 * k) for k in range(18)]
    tallies = [tally(by_brightness, ROWS, torch.full((12,), angle)) for angle in grid]
    average_over_the_grid(tallies)
    again = tally(by_brightness, ROWS, torch.full((12,), grid[4]), averaged=True)
    same = again.predicted["averaged"] == tallies[4].predicted["averaged"]
    assert same.float().mean() > 0.9
    assert 0 < again.predicted["averaged"].sum() < 12


def test_batches_are_joined_in_their_order() -> None:
    many = torch.arange(12).repeat(6)
    angles = torch.linspace(0, 6, 72)
    whole = tally(
        task(
            {
                "ring": lambda images: AngleEstimates(
                    torch.zeros(len(images)), torch.ones(len(images)).bool()
                )
            }
        ),
        many,
        angles,
    )
    assert torch.equal(whole.angles, angles)
    assert whole.predicted["plain"].shape == whole.estimates["ring"].angle.shape == (72,)
    alone = tally(task({}), many[50:51], angles[50:51])
    assert torch.equal(whole.predicted["ceiling"][50:51], alone.predicted["ceiling"])
    assert set(whole.milliseconds()) == {"classifier", "ring"}


def test_the_share_of_the_gap() -> None:
    found = {"plain": 0.4, "ring": 0.6, "ceiling": 0.8}
    assert share_of_the_gap(found, "ring") == pytest.approx(0.5)
    assert share_of_the_gap({**found, "ceiling": 0.4}, "ring") is None


def test_turned_back_is_the_inverse_of_turned() -> None:
    angles = torch.linspace(0, 6, 12)
    back = turned_back(rotate(PARENTS, angles), angles, 0.0)
    middle = (back - PARENTS)[..., 8:-8, 8:-8]
    assert middle.abs().mean() < 0.05


class Brighter(torch.nn.Module):
    """A network that looks where the bright half is."""

    config = BICConfig(view_size=28, beam_length=12)

    def forward(self, views: Tensor) -> Tensor:
        line = torch.linspace(-1, 1, views.shape[-1])
        up, left = -(views.mean((1, 3)) * line).sum(-1), -(views.mean((1, 2)) * line).sum(-1)
        return to_unit(torch.atan2(left, up))


@pytest.mark.parametrize("side", [None, 28])
def test_a_module_finds_the_angle_of_the_whole_or_of_the_middle(side: int | None) -> None:
    front = Canonicalizer(Brighter())  # type: ignore[arg-type]
    angles = torch.linspace(0, 6, 12)
    canvas = rotate(PARENTS, angles, width=0 if side is None else 20)
    found = finder(front, torch.device("cpu"), side)(canvas)
    assert torch.rad2deg(angular_error(found.angle, angles)).median() < 12
    assert found.applied.all()


def test_a_head_learns_other_classes() -> None:
    torch.manual_seed(0)
    labels = torch.arange(60) % 3
    scores = torch.randn(60, 10) + 3 * torch.nn.functional.one_hot(labels, 10)
    head = fit_head(scores, labels, steps=50)
    assert (head(scores).argmax(-1) == labels).float().mean() > 0.95
    assert not head(scores).requires_grad


def test_rounding_goes_all_the_way_down() -> None:
    assert rounded({"a": 0.123456, "b": {"c": 1 / 3, "d": 2, "e": None}}) == {
        "a": 0.1235,
        "b": {"c": 0.3333, "d": 2, "e": None},
    }
