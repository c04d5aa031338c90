"""`reproduce halves`: which pixels a part of the beams reads, and words that follow the figures."""

from __future__ import annotations

import pytest
import torch

from radialbeams.nn.beams import PolarBeams, polar_positions
from radialbeams.nn.bic import BICConfig
from radialbeams.reproduce import halves
from radialbeams.reproduce.seed_statistics import spread
from radialbeams.reproduce.settings import ReproduceSettings

CONFIG = BICConfig(view_size=28, beam_length=13, num_beams=16, sampler="polar")


@pytest.mark.parametrize("part", halves.PARTS)
def test_a_part_reads_between_its_radii(part: str) -> None:
    start, end = halves.PARTS[part]
    places = halves.part_positions(16, 13, 0, 28, start, end)
    radii = (places - 13.5).norm(dim=-1) / 13.5
    assert radii.min() >= start
    assert radii.max() <= end + 1e-9


def test_the_whole_is_all_of_the_polar_beams() -> None:
    assert torch.allclose(
        halves.part_positions(16, 13, 1, 28, 0, 1), polar_positions(16, 13, 1, 28)
    )
    images = torch.rand(2, 3, 28, 28)
    usual = PolarBeams(16, 13, 1, 28)(images)
    assert torch.allclose(halves.PartBeams(CONFIG, 0, 1)(images), usual, atol=1e-5)


def test_a_quarter_turn_rolls_the_beams_of_a_part() -> None:
    beams, images = halves.PartBeams(CONFIG, 0.5, 1), torch.rand(1, 3, 28, 28)
    turned = beams(torch.rot90(images, 1, (2, 3)))
    assert torch.allclose(turned, beams(images).roll(4, dims=1), atol=1e-5)


def test_all_encoders_are_equal() -> None:
    for kind in halves.KINDS:
        plan = [t for t in halves.trainings(ReproduceSettings()) if t.tags["kind"] == kind]
        assert len({t.recipe.model for t in plan}) == 1
        assert {t.recipe.protocol for t in plan} == {"leakfree"}


@pytest.mark.parametrize(("outer", "words"), [(1.0, "the outer"), (9.0, "the inner")])
def test_the_better_half_follows_the_figures(outer: float, words: str) -> None:
    cells = {
        f"{kind}, {part}": {"mean": spread([value - 0.1, value, value + 0.1])}
        for kind in halves.KINDS
        for part in halves.PARTS
        for value in [outer if "outer" in part else 5.0]
    }
    ours, why = halves.conclude({"cells": cells, "notes": [], "steps": {}})
    assert ours[halves.BETTER] == words
    assert f"{outer:.2f}°" in why
