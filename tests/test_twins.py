"""The leak-free view is made twice, in torch for training and in numpy for files: they agree."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from radialbeams import zoo
from radialbeams.canonicalizer import Canonicalizer
from radialbeams.cards import ViewProtocol
from radialbeams.front.view_geometry import ViewGeometry
from radialbeams.images import views as light
from radialbeams.nn import rotation
from radialbeams.training.data import DataNotFound, ImageSet, load
from radialbeams.training.data.scenes import scene_set
from radialbeams.training.evaluate import predict_with
from radialbeams.training.views import LeakfreeViews
from radialbeams.training.weights import load_model


def real_or_scenes(name: str) -> ImageSet:
    try:
        return load(name, split="test", limit=16)
    except DataNotFound:
        return scene_set(16, size=250 if name == "lfw" else 128)


def as_pictures(images: ImageSet) -> list[Image.Image]:
    return [Image.fromarray(pixels.permute(1, 2, 0).numpy()) for pixels in images.images]


def test_both_know_the_same_numbers() -> None:
    assert (light.REACH, light.LARGEST_VIEW) == (rotation.REACH, rotation.LARGEST_VIEW)


@pytest.mark.parametrize(("name", "view"), [("coil100", 57), ("coil100", 40), ("lfw", 112)])
def test_both_make_the_same_view(name: str, view: int) -> None:
    images = real_or_scenes(name)
    parent = images.images.shape[-1]
    trained = LeakfreeViews(view).upright(images.images).numpy()
    used = np.stack([light.leakfree_view(p, parent, view) for p in as_pictures(images)])
    assert np.abs(trained - used).mean() <= 1e-5  # asked for: 1/255
    assert np.abs(trained - used).max() <= 1e-4


@pytest.mark.parametrize("name", ["ring.coil100", "ring.lfw"])
def test_a_trained_model_gives_the_same_answer_on_both(name: str) -> None:
    model, card = load_model(zoo.find(name).stem)
    images = real_or_scenes(card.data.name)
    views = LeakfreeViews(card.network.view_size).upright(images.images)
    found = predict_with(model, views, *card.calibration)
    assert isinstance(found, tuple)
    answers = Canonicalizer(name, threads=1).answers(as_pictures(images))
    degrees = np.array([answer.angle_degrees for answer in answers])
    apart = np.abs((degrees - torch.rad2deg(found[0]).numpy() + 180) % 360 - 180)
    assert apart.max() <= 0.1
    sure = np.array([answer.confidence for answer in answers])
    np.testing.assert_allclose(sure, found[1].numpy(), atol=1e-3)


def test_a_large_file_is_seen_as_its_small_parent_is(tmp_path: Path) -> None:
    """From 1,000 px the view is that of the picture at the parent's size."""
    large = scene_set(1, size=1000).images[0].permute(1, 2, 0).numpy()
    small = Image.fromarray(large).resize((128, 128), Image.Resampling.LANCZOS)
    seen = light.leakfree_view(Image.fromarray(large), 128, 57)
    assert np.abs(seen - light.leakfree_view(small, 128, 57)).mean() < 1 / 255


@pytest.mark.parametrize("degrees", [1.4, 45.0, -200.3])
@pytest.mark.parametrize(("name", "view"), [("coil100", 57), ("lfw", 112)])
def test_both_turn_a_view_alike(name: str, view: int, degrees: float) -> None:
    images = real_or_scenes(name)
    parent = images.images.shape[-1]
    turns = torch.full((len(images.images),), math.radians(degrees))
    trained = LeakfreeViews(view).render(images.images, turns).numpy()
    used = np.stack([light.leakfree_view(p, parent, view, degrees) for p in as_pictures(images)])
    assert np.abs(trained - used).max() <= 1e-4


@pytest.mark.parametrize("degrees", [0.0, 33.3])
@pytest.mark.parametrize("sigma", [1.0, 1.25])
def test_both_make_views_with_a_blur_of_their_own_alike(degrees: float, sigma: float) -> None:
    """As large as the parent, which only a blur of its own allows."""
    images = scene_set(3, size=64)
    turns = torch.full((3,), math.radians(degrees))
    trained = LeakfreeViews(64, sigma).render(images.images, turns).numpy()
    used = np.stack([light.leakfree_view(p, 64, 64, degrees, sigma) for p in as_pictures(images)])
    assert np.abs(trained - used).max() <= 1e-4
    if not degrees:
        seen = ViewGeometry(64, 3, 64, sigma)(images.images.float() / 255)
        assert np.abs(trained - seen.numpy()).max() <= 1e-4


@pytest.mark.parametrize("degrees", [0.0, 33.3])
def test_both_make_views_of_a_larger_disc_alike(degrees: float) -> None:
    images = scene_set(3, size=64)
    turns = torch.full((3,), math.radians(degrees))
    wide, usual = (
        LeakfreeViews(64, 1.1, reach).render(images.images, turns).numpy() for reach in (0.95, 0.9)
    )
    assert np.abs(wide - usual).max() > 0.05
    used = np.stack(
        [light.leakfree_view(p, 64, 64, degrees, 1.1, 0.95) for p in as_pictures(images)]
    )
    assert np.abs(wide - used).max() <= 1e-4
    if not degrees:
        seen = ViewGeometry(64, 3, 64, 1.1, 0.95)(images.images.float() / 255)
        assert np.abs(wide - seen.numpy()).max() <= 1e-4


def test_a_wider_blur_is_not_the_same_view() -> None:
    images = scene_set(1, size=64)
    sharp, soft = (LeakfreeViews(64, sigma).upright(images.images) for sigma in (1.0, 1.25))
    assert (sharp - soft).abs().max() > 1e-2


def test_blur_and_disc_of_a_card_reach_the_views_of_files() -> None:
    picture = as_pictures(scene_set(1, size=64))[0]
    protocol = ViewProtocol("leakfree", 64, sigma=1.25, reach=0.95)
    seen = light.view(picture, protocol, 64, 3)
    expected = light.leakfree_view(picture, 64, 64, sigma=1.25, reach=0.95)
    np.testing.assert_array_equal(seen, expected)


def test_without_a_blur_of_its_own_a_view_is_what_it_always_was() -> None:
    images = scene_set(2, size=128)
    by_sizes = LeakfreeViews(40).upright(images.images)
    as_given = LeakfreeViews(40, 57 / 40).upright(images.images)
    assert torch.equal(by_sizes, as_given)


@pytest.mark.parametrize("size", [8, 32, 57, 192])
def test_a_view_of_any_size_is_two_matrix_products(size: int) -> None:
    rng = np.random.default_rng(0)
    matrix, pixels = rng.random((size, size), np.float32), rng.random((3, size, size), np.float32)
    expected = matrix @ pixels @ matrix.T
    np.testing.assert_allclose(light._both_axes(matrix, pixels), expected, rtol=1e-4)


@pytest.mark.parametrize("side", [65, 100, 250])
def test_the_matrix_of_a_resize_is_pillows(side: int) -> None:
    pixels = np.random.default_rng(0).random((side, side), dtype=np.float32)
    resized = Image.fromarray(pixels).resize((side, 64), Image.Resampling.LANCZOS)
    np.testing.assert_allclose(light._lanczos(side, 64) @ pixels, np.asarray(resized), atol=1e-5)


@pytest.mark.parametrize("side", [64, 65, 100, 250])
def test_a_file_is_seen_as_if_it_were_resized_to_its_parent_first(side: int) -> None:
    """Up to the rounding and clipping of that parent's own pixels."""
    noise = np.random.default_rng(0).integers(40, 216, (side, side + 9, 3), dtype=np.uint8)
    picture = Image.fromarray(noise)
    parent = light.centre_square(picture).resize((64, 64), Image.Resampling.LANCZOS)
    seen, expected = (light.leakfree_view(p, 64, 28) for p in (picture, parent))
    np.testing.assert_allclose(seen, expected, atol=1 / 255)
