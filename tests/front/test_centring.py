"""Centring: the centre turns and moves with the object, and boxes are what `crops` takes."""

from __future__ import annotations

import math

import pytest
import torch
from conftest import TINY_RING
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from radialbeams.front.centring import border_colour, centre_of_mass, centred_boxes, weights
from radialbeams.front.module import Canonicalizer
from radialbeams.nn.architectures import build


def spot(x: float, y: float, size: tuple[int, int] = (60, 80), ground: float = 0.2) -> Tensor:
    """(1, 3, H, W): a soft bright spot on a plain ground."""
    rows, columns = torch.meshgrid(*(torch.arange(side) for side in size), indexing="ij")
    bump = torch.exp(-((columns - x) ** 2 + (rows - y) ** 2) / 18)
    return (ground + (0.9 - ground) * bump).expand(1, 3, -1, -1)


def centre(images: Tensor) -> Tensor:
    return centre_of_mass(weights(images))


@given(st.floats(15, 64), st.floats(15, 44), st.sampled_from([0.0, 0.2, 0.5, 1.0]))
@settings(max_examples=30, deadline=None)
def test_the_centre_is_the_objects(x: float, y: float, ground: float) -> None:
    assert (centre(spot(x, y, ground=ground)) - torch.tensor([x, y])).abs().max() < 0.1


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_the_centre_turns_with_the_image(quarters: int) -> None:
    images = spot(50, 20, (80, 80)) + spot(30, 44, (80, 80), 0.0) / 10
    x, y = (centre(images)[0] - 39.5).tolist()
    turned = centre(torch.rot90(images, quarters, (-2, -1)))[0] - 39.5
    for _ in range(quarters):
        x, y = y, -x  # counter-clockwise as displayed, rows downwards
    assert turned.tolist() == pytest.approx([x, y], abs=1e-3)


def test_where_nothing_stands_out_it_is_the_middle() -> None:
    assert centre(torch.full((2, 3, 30, 41), 0.4)).tolist() == [[20.0, 14.5]] * 2


def test_an_object_that_touches_the_border_does_not_become_the_ground() -> None:
    images = torch.full((1, 1, 40, 40), 0.1)
    images[..., 10:30, :12] = 0.9
    assert border_colour(images).tolist() == [[pytest.approx(0.1)]]
    assert centre(images)[0].tolist() == pytest.approx([5.5, 19.5], abs=0.01)


def test_saliency_asks_nothing_of_the_border() -> None:
    images = spot(50, 25).clone()
    images[..., 0, :] = images[..., -1, :] = images[..., :, 0] = images[..., :, -1] = 0.9
    by_border = centre_of_mass(weights(images, "foreground"))
    by_mean = centre_of_mass(weights(images, "saliency"))
    true = torch.tensor([50.0, 25.0])
    assert (by_mean - true).norm() < (by_border - true).norm()


def test_boxes_are_squares_around_the_centre() -> None:
    images = torch.cat((spot(50, 25), spot(30, 30)))
    boxes = centred_boxes(images)
    assert boxes[:, 0].tolist() == [0, 1]
    assert boxes[0, 1:].tolist() == pytest.approx([20, -5, 80, 55], abs=0.1)
    assert (boxes[:, 3] - boxes[:, 1]).tolist() == pytest.approx([60, 60])
    assert (centred_boxes(images, side=20)[1, 1:]).tolist() == pytest.approx(
        [20, 20, 40, 40], abs=0.1
    )


def test_a_shift_of_the_object_changes_nothing_of_what_is_seen() -> None:
    torch.manual_seed(0)
    module = Canonicalizer(build(TINY_RING), parent_size=54).eval()
    pattern = torch.rand(1, 3, 20, 20)
    answers = []
    for left, top in ((30, 30), (5, 38), (44, 12)):
        images = torch.zeros(1, 3, 80, 80)
        images[..., top : top + 20, left : left + 20] = pattern
        upright, pose = module.crops(images, centred_boxes(images, side=32), margin=0)
        answers.append((upright, pose.angle))
    for upright, angle in answers[1:]:
        torch.testing.assert_close(angle, answers[0][1], rtol=0, atol=math.radians(0.1))
        torch.testing.assert_close(upright, answers[0][0], rtol=0, atol=1e-2)


def test_no_image_has_no_box() -> None:
    assert centred_boxes(torch.zeros(0, 3, 9, 9)).shape == (0, 5)


def test_gradients_reach_the_images() -> None:
    images = spot(40, 30).clone().requires_grad_()
    centred_boxes(images).square().sum().backward()  # type: ignore[no-untyped-call]
    assert images.grad is not None and images.grad.isfinite().all() and images.grad.any()


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ValueError, match="by must be one of foreground, saliency; got 'edges'"):
        centred_boxes(torch.zeros(1, 3, 9, 9), by="edges")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("images", "sentence"),
    [
        (torch.zeros(3, 9, 9), r"shape \(N, C, H, W\); got \(3, 9, 9\)\. Pass a single image"),
        (torch.zeros(9, 9), r"shape \(N, C, H, W\); got \(9, 9\)"),
        (torch.zeros(1, 3, 9, 9, dtype=torch.uint8), "float images in .0, 1.; got torch.uint8"),
    ],
)
def test_unsuitable_images_are_refused(images: Tensor, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        centred_boxes(images)


@pytest.mark.parametrize("side", [0, -3, math.nan, math.inf])
def test_a_side_is_longer_than_nothing(side: float) -> None:
    with pytest.raises(ValueError, match="side must be a number of pixels above 0"):
        centred_boxes(torch.zeros(1, 3, 9, 9), side=side)
