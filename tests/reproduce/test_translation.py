"""The shifts of `reproduce translation`, and that its verdict follows from the figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import beams_of
from torch import Tensor

from radialbeams.nn.bic import BICConfig
from radialbeams.reproduce import paper, translation
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.training.data import ImageSet
from radialbeams.training.views import LeakfreeViews, PaperViews

SIZE = 128


def spot(x: int, y: int, size: int = SIZE) -> Tensor:
    """A black image with a bright square around one pixel."""
    image = torch.zeros(1, 3, size, size)
    image[..., y - 3 : y + 4, x - 3 : x + 4] = 1
    return image


def centre_of(view: Tensor) -> tuple[float, float]:
    weight = view[0].sum(0).double()
    grid = torch.arange(len(weight), dtype=torch.float64)
    return (
        float((weight.sum(0) * grid).sum() / weight.sum()),
        float((weight.sum(1) * grid).sum() / weight.sum()),
    )


# --- shifting ---


def test_whole_pixels_move_and_black_comes_in() -> None:
    image = torch.arange(1.0, 17.0).reshape(1, 1, 4, 4)
    right = translation.moved(image, 0, 1)
    assert torch.equal(right[..., 1:], image[..., :-1])
    assert right[..., 0].abs().sum() == 0
    up = translation.moved(image, -2, 0)
    assert torch.equal(up[..., :2, :], image[..., 2:, :])
    assert up[..., 2:, :].abs().sum() == 0
    assert torch.equal(translation.moved(image, 0, 0), image)


@pytest.mark.parametrize("turn", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("direction", translation.DIRECTIONS)
@pytest.mark.parametrize("shift", [-4, 8])
def test_both_protocols_move_the_turned_image_by_the_same_share(
    turn: float, direction: str, shift: int
) -> None:
    turns = torch.tensor([turn])
    for views, scale in ((PaperViews(), 1.0), (LeakfreeViews(57), 57 / (0.9 * SIZE))):
        prepared = views.prepare(spot(75, 60))
        before = centre_of(views.turn(prepared, turns))
        after = centre_of(translation.shifted(views, prepared, turns, direction, shift / SIZE))
        moved = [scale * shift, 0.0] if direction == "horizontal" else [0.0, scale * shift]
        found = [after[0] - before[0], after[1] - before[1]]
        assert found == pytest.approx(moved, abs=0.05)


class Brightness(torch.nn.Module):
    """Answers with that of the left half: a shift changes it."""

    def angles(self, views: Tensor) -> Tensor:
        return views[..., : views.shape[-1] // 2].mean(dim=(1, 2, 3))


def test_changes_are_against_the_answer_without_a_shift() -> None:
    pixels = (spot(20, 64) * 255).byte().expand(6, -1, -1, -1).contiguous()
    images = ImageSet("spots", pixels, tuple("abcdef"), ("",) * 6)
    found: dict[str, Any] = translation.sweep(
        Brightness(),  # type: ignore[arg-type]
        images,
        PaperViews(),
        torch.device("cpu"),
    )
    assert found["images"] == 6
    assert len(found["cells"]) == 2 * len(translation.SHIFTS)
    assert all(sum(cell["counts"]) == 6 for cell in found["cells"])
    json.dumps(found)


# --- the verdict ---


def cells(slope: float) -> list[dict[str, Any]]:
    """Changes in proportion to the shift: `slope` degrees a pixel, twice as fast downwards."""
    found = []
    for direction in translation.DIRECTIONS:
        for shift in translation.SHIFTS:
            change = abs(shift) * slope * (2 if direction == "vertical" and shift > 0 else 1)
            values = np.full(10, change)
            found.append(
                {"direction": direction, "shift": shift, **translation.cell_of(values, values)}
            )
    return found


def test_the_reach_is_where_the_worse_side_passes_the_boundary() -> None:
    assert translation.crossing(cells(2.0), "horizontal") == 2.5
    assert translation.crossing(cells(2.0), "vertical") == 1.25
    assert translation.crossing(cells(0.1), "vertical") == 8


def models(slopes: dict[str, list[float]]) -> dict[str, Any]:
    return {
        name: translation.combined([{"images": 10, "error": 1.0, "cells": cells(s)} for s in some])
        for name, some in slopes.items()
    }


@pytest.mark.parametrize(
    ("thick", "words"),
    [
        ([1.0, 1.01], "thicker beams help"),
        ([3.0, 3.01], "thicker beams hurt"),
        ([1.0, 3.0], "make no clear difference"),
    ],
)
def test_whether_thickness_helps_follows_from_the_seeds(thick: list[float], words: str) -> None:
    slopes = {
        translation.name_of(1): [2.0, 2.01],
        translation.name_of(2): [2.0, 2.01],
        translation.name_of(3): thick,
        **{f"shipped {name}": [0.1] for name in translation.PRETRAINED},
    }
    found = models(slopes)
    assert words in translation.conclude({"models": found})[1]
    assert "≥ 8 px" not in translation.stable_range(
        found[translation.name_of(1)]["stable"]["horizontal"]
    )
    assert (
        translation.stable_range(found["shipped ring"]["stable"]["horizontal"]) == "±8 px or more"
    )


def test_the_figures_need_nothing_but_json(tmp_path: Path) -> None:
    from radialbeams.reproduce import figures

    names = [translation.name_of(e) for e in translation.EPSILONS]
    names += [f"shipped {name}" for name in translation.PRETRAINED]
    data = {
        "models": models({name: [2.0] for name in names}),
        "edges": translation.EDGES.tolist(),
        "boundary": translation.BOUNDARY,
    }
    with figures.style():
        drawn = translation.draw(json.loads(json.dumps({"data": data})))
        assert set(drawn) == {"", "mean"}
        for suffix, figure in drawn.items():
            figures.save(figure, tmp_path / f"translation{suffix}", quick=True)


# --- the plan ---


def test_trainings_differ_in_thickness_and_seed_only() -> None:
    planned = translation.trainings(ReproduceSettings())
    assert len(planned) == 9
    assert {beams_of(t.recipe.model).epsilon for t in planned} == {1, 2, 3}
    assert planned[0].recipe.model == BICConfig(hub=paper.HUB)  # otherwise the default
    assert (planned[0].recipe.steps, planned[0].recipe.learning_rate) == (4096, 1e-4)
    one, other = (vars(t.recipe) for t in (planned[0], planned[3]))
    assert {name for name in one if one[name] != other[name]} == {"model"}
