"""Rotation: sign, centre, exact quarter turns and padding, with literal matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch import Tensor

from radialbeams.nn import rotation
from radialbeams.nn.rotation import PADDINGS, Padding, pad, rotate

paddings = pytest.mark.parametrize("padding", PADDINGS)
sizes = pytest.mark.parametrize("size", [9, 10, 128, 250])
QUARTERS = (-4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 7)


def noise(*shape: int) -> Tensor:
    """Bytes over 255, as decoded images are: differences of such numbers are not exact."""
    return torch.randint(256, shape, generator=torch.Generator().manual_seed(0)) / 255


def smooth(size: int) -> Tensor:
    """An image without any symmetry that bilinear interpolation hardly changes: (1, 1, W, W)."""
    offsets = torch.linspace(-1, 1, size)
    y, x = torch.meshgrid(offsets, offsets, indexing="ij")
    return (0.5 + 0.3 * torch.sin(2 * x + y) + 0.2 * torch.cos(3 * y - x + 1))[None, None]


def disc(size: int, radius: float = 0.9) -> Tensor:
    """The pixels within a part of the half-width: (W, W), booleans."""
    offsets = torch.arange(size) - (size - 1) / 2
    return offsets[:, None] ** 2 + offsets**2 <= (radius * (size - 1) / 2) ** 2


# --- sign ------------------------------------------------------------------------------------


def test_a_quarter_turn_moves_content_counter_clockwise_2x2() -> None:
    image = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert rotate(image[None, None], math.pi / 2)[0, 0].tolist() == [[2, 4], [1, 3]]


def test_a_quarter_turn_moves_content_counter_clockwise_3x3() -> None:
    image = torch.arange(1.0, 10.0).reshape(3, 3)
    turned = rotate(image[None, None], math.pi / 2)[0, 0]
    assert turned.tolist() == [[3, 6, 9], [2, 5, 8], [1, 4, 7]]


@pytest.mark.parametrize("size", [64, 65])
def test_sign_and_centre_are_those_of_pillow(size: int) -> None:
    image = smooth(size)
    pillow = Image.fromarray(image[0, 0].numpy()).rotate(30, Image.Resampling.BILINEAR)
    expected = torch.from_numpy(np.array(pillow))

    def difference(degrees: float) -> float:
        ours = rotate(image, math.radians(degrees))[0, 0]
        return (ours - expected)[disc(size)].abs().mean().item()

    assert difference(30) < 1e-3
    assert difference(-30) > 0.1


# --- exact quarter turns ---------------------------------------------------------------------


@sizes
@pytest.mark.parametrize("k", QUARTERS)
def test_quarter_turns_are_rot90_to_the_bit(size: int, k: int) -> None:
    images = noise(1, 2, size, size)
    assert torch.equal(rotate(images, k * math.pi / 2), torch.rot90(images, k, (-2, -1)))


@paddings
@pytest.mark.parametrize("width", [0, 3])
@pytest.mark.parametrize("size", [1, 9, 10])
def test_quarter_turns_only_move_pixels_whatever_the_padding(
    size: int, width: int, padding: Padding
) -> None:
    images = noise(4, 3, size, size)
    for k in QUARTERS:
        turned = rotate(images, k * math.pi / 2, width=width, padding=padding)
        expected = torch.rot90(pad(images, width, padding), k, (-2, -1))
        assert torch.equal(turned, expected), k


@sizes
def test_a_quarter_turn_that_need_not_be_exact_is_near(size: int) -> None:
    images = noise(1, 1, size, size)
    for k in QUARTERS:
        found = rotate(images, k * math.pi / 2, width=2, exact=False)
        expected = rotate(images, k * math.pi / 2, width=2)
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


@sizes
def test_one_batch_may_mix_exact_and_other_angles(size: int) -> None:
    images = noise(6, 1, size, size)
    angles = torch.tensor([0.0, 0.3, math.pi / 2, -math.pi, 2.0, 3 * math.pi / 2])
    turned = rotate(images, angles)
    for n, k in {0: 0, 2: 1, 3: 2, 5: 3}.items():
        assert torch.equal(turned[n], torch.rot90(images[n], k, (-2, -1))), n
    for n in (1, 4):
        alone = rotate(images[n : n + 1], angles[n].item())[0]
        torch.testing.assert_close(turned[n], alone)
        assert (turned[n] - images[n]).abs().mean() > 0.1


@paddings
@pytest.mark.parametrize("size", [9, 10, 128])
@pytest.mark.parametrize("k", [-1, 0, 1, 2, 3])
def test_interpolation_is_continuous_with_the_exact_turns(
    size: int, k: int, padding: Padding
) -> None:
    images = noise(1, 1, size, size)
    exact = rotate(images, k * math.pi / 2, width=3, padding=padding)
    for nudge in (1e-4, -1e-4):
        close = rotate(images, k * math.pi / 2 + nudge, width=3, padding=padding)
        assert not torch.equal(close, exact)
        # Pixels move by at most 1e-4 · √2/2 · S.
        assert (close - exact).abs().max() < 2 * 1e-4 * (size + 6)


# --- centre and the way back -----------------------------------------------------------------


@pytest.mark.parametrize("size", [40, 41])
@pytest.mark.parametrize("degrees", [7, 45, 133.3, -80])
def test_a_centred_radially_symmetric_image_is_invariant(size: int, degrees: float) -> None:
    def bump(centre: float) -> Tensor:
        offsets = torch.arange(size) - centre
        radius = (offsets[:, None] ** 2 + offsets**2).sqrt()
        return torch.exp(-((radius / (0.3 * size)) ** 2))[None, None]

    def change(image: Tensor) -> float:
        return (rotate(image, math.radians(degrees)) - image)[..., disc(size)].abs().max().item()

    assert change(bump((size - 1) / 2)) < 5e-3
    assert change(bump(size / 2)) > 5e-3  # half a pixel off shows


@pytest.mark.parametrize("size", [64, 65])
@pytest.mark.parametrize("degrees", [10, 45, 100, 271])
def test_there_and_back_again_is_the_image_inside_the_disc(size: int, degrees: float) -> None:
    image, angle = smooth(size), math.radians(degrees)
    turned = rotate(image, angle)
    assert (turned - image)[..., disc(size)].abs().mean() > 0.02
    assert (rotate(turned, -angle) - image)[..., disc(size)].abs().max() < 2e-3


# --- padding ---------------------------------------------------------------------------------


def test_pad_surrounds_each_image_with_zeros_or_with_its_own_corner() -> None:
    images = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]).reshape(2, 1, 2, 2)
    assert pad(images, 1)[0, 0].tolist() == [[0, 0, 0, 0], [0, 1, 2, 0], [0, 3, 4, 0], [0, 0, 0, 0]]
    first, second = pad(images, 1, "corner")[:, 0].tolist()
    assert first == [[1, 1, 1, 1], [1, 1, 2, 1], [1, 3, 4, 1], [1, 1, 1, 1]]
    assert second == [[5, 5, 5, 5], [5, 5, 6, 5], [5, 7, 8, 5], [5, 5, 5, 5]]


@paddings
def test_pad_leaves_the_image_as_it_is(padding: Padding) -> None:
    images = noise(4, 3, 10, 10)
    assert torch.equal(pad(images, 3, padding)[..., 3:-3, 3:-3], images)


@paddings
@pytest.mark.parametrize("size", [9, 10, 33])
@pytest.mark.parametrize("width", [0, 1, 4, 7])
def test_rotate_with_width_is_rotate_of_the_padded(size: int, width: int, padding: Padding) -> None:
    images = noise(5, 3, size, size)
    angles = torch.tensor([0.0, math.pi / 2, 0.4, -2.0, 5.5])
    once = rotate(images, angles, width=width, padding=padding)
    assert once.shape == (5, 3, size + 2 * width, size + 2 * width)
    # The padded images have the fill in their corner, so rotating them needs no other one.
    twice = rotate(pad(images, width, padding), angles, padding=padding)
    torch.testing.assert_close(once, twice, atol=1e-5, rtol=0)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    angle=st.floats(-10, 10) | st.integers(-6, 6).map(lambda k: k * math.pi / 2),
    colour=st.tuples(*[st.floats(0, 1, width=32)] * 3),
    width=st.integers(0, 4),
)
def test_corner_padding_keeps_a_monochrome_image_monochrome(
    angle: float, colour: tuple[float, float, float], width: int
) -> None:
    channels = torch.tensor(colour)[None, :, None, None]
    turned = rotate(channels.expand(1, 3, 9, 9), angle, width=width, padding="corner")
    assert torch.equal(turned, channels.expand_as(turned))


def test_zero_padding_darkens_the_corners() -> None:
    turned = rotate(torch.ones(1, 1, 20, 20), math.pi / 4)
    assert turned[0, 0, 0, 0] == 0
    torch.testing.assert_close(turned[0, 0, 10, 10], torch.tensor(1.0))


def test_rotate_leaves_its_input_alone_and_passes_gradients() -> None:
    images = noise(2, 1, 9, 9).requires_grad_()
    before = images.detach().clone()
    rotate(images, torch.tensor([math.pi / 2, 0.3])).sum().backward()
    assert torch.equal(images.detach(), before)
    assert images.grad is not None
    assert torch.equal(images.grad[0], torch.ones(1, 9, 9))  # each pixel arrives once
    assert images.grad[1].abs().sum() > 0


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 3, 8, 9), (3, 8, 8)])
def test_rotate_refuses_what_is_no_batch_of_squares(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="square images of shape") as error:
        rotate(torch.zeros(shape), 0.1)
    assert str(error.value) == (
        f"Expected square images of shape (N, C, W, W); got {shape}. "
        "Crop or pad them to a square first."
    )


def test_an_unknown_padding_is_refused_with_the_known_ones() -> None:
    text = r"^padding must be one of zeros, corner; got 'reflect'\.$"
    with pytest.raises(ValueError, match=text):
        rotate(torch.zeros(1, 1, 4, 4), 0.1, padding="reflect")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=text):
        pad(torch.zeros(1, 1, 4, 4), 1, "reflect")  # type: ignore[arg-type]


# --- leak-free views --------------------------------------------------------------------------


def test_the_largest_view_is_under_half_of_the_parent() -> None:
    assert [rotation.largest_view(size) for size in (128, 250, 64)] == [57, 112, 28]


def test_a_view_that_is_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 57 px; got 58"):
        rotation.blur_sigma(128, 58)


def test_the_blur_grows_as_the_view_shrinks() -> None:
    assert rotation.blur_sigma(128, 57) == 1.0
    assert rotation.blur_sigma(128, 19) == 3.0


def test_the_blur_keeps_constants_up_to_the_border() -> None:
    kernel = rotation.gaussian_matrix(20, 1.0)
    image = torch.full((1, 1, 20, 20), 0.7)
    torch.testing.assert_close(rotation.blur(image, kernel), image)


@pytest.mark.parametrize("size", [28, 57])
def test_convention_a_view_turns_counter_clockwise(size: int) -> None:
    parents = torch.rand(2, 3, 128, 128)
    quarter = torch.full((2,), math.pi / 2)
    upright = rotation.render(parents, torch.zeros(2), size)
    turned = rotation.render(parents, quarter, size)
    torch.testing.assert_close(turned, torch.rot90(upright, 1, (-2, -1)), atol=1e-4, rtol=0)


def test_nothing_is_shown_outside_of_the_disc() -> None:
    view = rotation.render(torch.ones(1, 1, 128, 128), torch.tensor([0.3]), 57)
    torch.testing.assert_close(view[0, 0], rotation.disc(57))
    assert view[0, 0, 0, 0] == 0 and view[0, 0, 28, 28] == 1


def response(direction: float, cycles: float, turn: float = 0.7) -> float:
    """How much of a wave across the parent is left in a turned view of it, on average."""
    size, view_size = 128, 57
    place = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
    along = place * math.cos(direction) + place[:, None] * math.sin(direction)
    wave = torch.stack([torch.sin(2 * math.pi * cycles * along + p) for p in (0, math.pi / 2)])
    kernel = rotation.gaussian_matrix(size, rotation.blur_sigma(size, view_size))
    seen = rotation.render(
        rotation.blur(wave[:, None].float(), kernel), torch.full((2,), turn), view_size
    )
    inside = rotation.disc(view_size) > 0
    return float(seen[:, 0, inside].square().sum(0).mean().sqrt())


@pytest.mark.parametrize("cycles", [0.05, 0.15, 0.2, 0.25])
def test_blur_and_resample_are_one_gaussian_in_every_direction(cycles: float) -> None:
    expected = math.exp(-2 * (math.pi * cycles) ** 2)  # σ = 1 pixel
    for direction in (0, math.pi / 8, math.pi / 4, 1.2):
        assert response(direction, cycles) == pytest.approx(expected, rel=0.005)


def test_a_gaussian_before_the_bicubic_kernel_would_favour_the_diagonals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rotation, "_bicubic_response", torch.ones_like)
    assert response(math.pi / 4, 0.25) > 1.03 * response(0, 0.25)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@paddings
def test_a_gpu_turns_as_a_cpu_does(padding: Padding) -> None:
    images = noise(6, 3, 9, 9)
    angles = torch.tensor([0.0, 90, 180, 270, 33, 271]).deg2rad()  # may stay on the CPU
    expected = rotate(images, angles, width=2, padding=padding)
    found = rotate(images.cuda(), angles, width=2, padding=padding).cpu()
    assert torch.equal(found[:4], expected[:4])
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
