"""Analytic scenes: the same function at any angle and size, and the proof that views do not lie."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from radialbeams.nn.angles import angular_error
from radialbeams.nn.ring_network import RingConfig
from radialbeams.nn.rotation import disc, rotate
from radialbeams.training.data import in_test, load
from radialbeams.training.data.scenes import OBJECTS, make_scene, render_scenes, scene_set
from radialbeams.training.fit import Fit
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import LeakfreeViews, draw_angles

SEEDS = range(40)
HELD_OUT = 10_000  # the first seed that training never sees
LEVEL = 1 / 255


@pytest.fixture(scope="module")
def upright() -> Tensor:
    return render_scenes(SEEDS, 64, torch.zeros(len(SEEDS)))


@pytest.fixture(scope="module")
def angles() -> Tensor:
    return draw_angles("evaluation", 0, 0, len(SEEDS))


def inside(difference: Tensor) -> Tensor:
    """Mean absolute difference within the disc, one for each image."""
    mask = disc(difference.shape[-1])
    return (difference.abs() * mask).sum((1, 2, 3)) / (3 * mask.sum())


# --- geometry ---


@pytest.mark.parametrize("size", [32, 33])
@pytest.mark.parametrize("quarters", [1, 2, 3, -1])
def test_convention_a_quarter_turn_moves_pixels(size: int, quarters: int) -> None:
    still = render_scenes(SEEDS, size, torch.zeros(len(SEEDS)))
    turned = render_scenes(SEEDS, size, torch.full((len(SEEDS),), quarters * math.pi / 2))
    assert (turned - torch.rot90(still, quarters, (-2, -1))).abs().max() <= 1e-6


def test_convention_positive_is_counter_clockwise(upright: Tensor, angles: Tensor) -> None:
    turned = render_scenes(SEEDS, 64, angles)
    right, wrong = (
        inside(rotate(upright, angles) - turned),
        inside(rotate(upright, -angles) - turned),
    )
    assert right.max() < 3 * LEVEL
    clear = torch.sin(angles).abs() > 0.2  # near 0° and 180° both signs agree
    assert wrong[clear].min() > 5 * LEVEL and (wrong / right)[clear].min() > 4


def test_up_is_up(upright: Tensor) -> None:
    """Brighter above than below, in every scene: at the edges stands nothing."""
    rows = upright.mean((1, 3))
    assert (rows[:, :4].mean(1) > rows[:, -4:].mean(1)).all()


def test_there_is_no_border_at_any_angle(angles: Tensor) -> None:
    """Outside of the square the scene goes on; no corner is left empty, as `rotate` leaves it."""
    turned = render_scenes(SEEDS, 16, angles)[..., [0, 0, -1, -1], [0, -1, 0, -1]]
    assert turned.amax(1).min() > 0.03


def test_size_is_only_how_finely_one_looks(upright: Tensor) -> None:
    finer = F.avg_pool2d(render_scenes(SEEDS, 128, torch.zeros(len(SEEDS))), 2)
    assert (finer - upright).abs().mean() < 0.5 * LEVEL


def test_more_samples_change_little(upright: Tensor) -> None:
    finer = render_scenes(SEEDS, 64, torch.zeros(len(SEEDS)), supersample=4)
    assert (finer - upright).abs().mean() < 0.25 * LEVEL


# --- what a seed decides ---


def test_a_seed_is_a_scene(upright: Tensor) -> None:
    assert make_scene(5) == make_scene(5)
    alone = render_scenes([5], 64, torch.zeros(1))
    assert torch.equal(alone[0], upright[5])  # whatever else is rendered with it
    flat = upright.flatten(1)
    distances = torch.cdist(flat, flat, p=1) / flat.shape[1] + torch.eye(len(flat))
    assert distances.min() > 5 * LEVEL


def test_the_kinds_of_scene_are_about_as_frequent() -> None:
    kinds = [make_scene(seed).kind for seed in range(500)]
    assert all(60 < kinds.count(kind) < 140 for kind in OBJECTS)
    assert set(kinds) == set(OBJECTS)


def test_values_lie_between_0_and_1(upright: Tensor) -> None:
    assert upright.shape == (len(SEEDS), 3, 64, 64) and upright.dtype == torch.float32
    assert upright.min() >= 0 and upright.max() <= 1
    assert upright.std((1, 2, 3)).min() > 0.05  # and are no plain surface


def test_wrong_input_is_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="one angle for each of 2 scenes; got 3"):
        render_scenes([0, 1], 8, torch.zeros(3))
    with pytest.raises(ValueError, match="seed must be at least 0; got -1"):
        make_scene(-1)


# --- as an image set ---


def test_scene_set_is_the_rendering_in_bytes(upright: Tensor) -> None:
    images = scene_set(3, size=64, first_seed=5)
    assert images.keys == ("scene5", "scene6", "scene7")
    assert images.groups == tuple(make_scene(seed).kind for seed in (5, 6, 7))
    assert images.angles_degrees is None
    assert torch.equal(images.images, (upright[5:8] * 255).round().byte())


def test_a_turned_scene_set_knows_its_angles() -> None:
    turned = scene_set(2, size=16, angles=torch.tensor([math.pi / 2, -math.pi / 2]))
    assert turned.angles_degrees == pytest.approx((90, 270), abs=1e-4)
    still = scene_set(2, size=16)
    assert torch.equal(turned.images[0], torch.rot90(still.images[0], 1, (-2, -1)))


def test_load_needs_no_files() -> None:
    test = load("scenes", size=16, split="test")
    assert test.name == "scenes" and all(map(in_test, test.keys))
    assert set(test.keys) == {f"scene{i}" for i in range(2000) if in_test(f"scene{i}")}
    few = load("scenes", limit=4)
    assert few.keys == ("scene0", "scene500", "scene1000", "scene1500")
    assert torch.equal(few.images[1:2], scene_set(1, first_seed=500).images)
    assert load("scenes", size=24, channels=1, limit=2).images.shape == (2, 1, 24, 24)


# --- the renderer of views against the truth ---


@pytest.mark.parametrize("size", [64, 128])
def test_rendered_views_are_those_of_turned_scenes(size: int, angles: Tensor) -> None:
    views = LeakfreeViews()
    rendered = views.render(scene_set(len(SEEDS), size=size).images, angles)
    true = views.upright(scene_set(len(SEEDS), size=size, angles=angles).images)
    assert inside(rendered - true).max() <= LEVEL
    assert (rendered - true).abs().max() <= 16 * LEVEL


@pytest.mark.long
def test_a_model_trained_on_rendered_views_is_as_good_on_scenes_never_resampled(
    tmp_path: Path, one_thread: None
) -> None:
    """Traces of the resample could be learnt from rendered views, and would be missed here."""
    config = RingConfig(
        view_size=28, sampler="polar", epsilon=0, num_beams=32, beam_length=16,
        stem=24, stages=(32,), width=48,
    )  # fmt: skip
    recipe = Recipe(
        "scenes", config, parent_size=64, protocol="leakfree", batch=48, steps=120,
        learning_rate=5e-3, schedule="one-cycle",
    )  # fmt: skip
    fit = Fit(recipe, scene_set(300, size=64), tmp_path, device=torch.device("cpu"))
    fit.run()
    model, count = fit.averaged(), 200
    angles = draw_angles("evaluation", 0, 0, count)

    def mean_error(views: Tensor) -> float:
        with torch.inference_mode():
            return torch.rad2deg(angular_error(model.angles(views), angles).mean()).item()

    still = scene_set(count, size=64, first_seed=HELD_OUT)
    turned = scene_set(count, size=64, first_seed=HELD_OUT, angles=angles)
    on_rendered = mean_error(fit.views.render(still.images, angles))
    on_analytic = mean_error(fit.views.upright(turned.images))
    assert on_rendered <= 8
    assert on_analytic <= 1.1 * on_rendered
