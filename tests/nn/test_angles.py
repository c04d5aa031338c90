"""The circle: where angles live, and what the circle loss is, bounds and gradient included."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from radialbeams.nn.angles import (
    TURN,
    angular_error,
    circle_loss,
    from_unit,
    paper_equivalent,
    positive,
    to_unit,
    wrap,
)

wild = settings(max_examples=100, deadline=None, derandomize=True)
finite = st.floats(-1e4, 1e4)
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def around(value: float, dtype: torch.dtype, steps: int = 4) -> torch.Tensor:
    """The value and its nearest neighbours among the numbers that the dtype has."""
    middle = torch.tensor(value, dtype=dtype)
    found = [middle]
    for towards in (-math.inf, math.inf):
        near = middle
        for _ in range(steps):
            near = torch.nextafter(near, torch.tensor(towards, dtype=dtype))
            found.append(near)
    return torch.stack(found)


# --- wrap ------------------------------------------------------------------------------------


def assert_wrapped(angles: torch.Tensor) -> None:
    wrapped = wrap(angles)
    bound = torch.tensor(math.pi, dtype=angles.dtype)
    assert (wrapped >= -bound).all(), wrapped
    assert (wrapped < bound).all(), wrapped


@dtypes
@wild
@given(angles=st.lists(finite, min_size=1, max_size=8))
def test_wrap_lands_in_its_half_open_range(angles: list[float], dtype: torch.dtype) -> None:
    assert_wrapped(torch.tensor(angles, dtype=dtype))


@dtypes
@pytest.mark.parametrize("half_turns", [-3, -1, 0, 1, 3])
def test_wrap_lands_in_its_range_next_to_the_seam(half_turns: int, dtype: torch.dtype) -> None:
    assert_wrapped(around(half_turns * math.pi, dtype))


@wild
@given(angle=st.floats(-3.1, 3.1), turns=st.integers(-50, 50))
def test_wrap_has_a_period_of_one_turn(angle: float, turns: int) -> None:
    wrapped = wrap(torch.tensor(angle + turns * TURN, dtype=torch.float64))
    assert wrapped.item() == pytest.approx(angle, abs=1e-12 * (1 + abs(turns)))


def test_wrap_sends_half_a_turn_to_its_lower_end() -> None:
    assert wrap(torch.tensor([math.pi, -math.pi])).tolist() == pytest.approx([-math.pi] * 2)


class Wrapped(nn.Module):
    def forward(self, angles: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return wrap(angles), positive(angles)


def test_exported_angles_are_wrapped_alike() -> None:
    turns = torch.cat([around(k * math.pi / 2, torch.float32) for k in range(-8, 9)])
    angles = torch.cat((turns, torch.linspace(-20, 20, 500)))
    shortest, upward = torch.export.export(Wrapped(), (angles,)).module()(angles)
    assert shortest.abs().max() <= math.pi + 1e-6
    assert (upward >= 0).all() and (upward < torch.tensor(TURN)).all()
    assert angular_error(shortest, wrap(angles)).max() < 2e-6
    assert angular_error(upward, positive(angles)).max() < 2e-6


# --- angle ↔ unit vector ---------------------------------------------------------------------


def test_unit_vectors_are_cosine_and_sine_in_this_order() -> None:
    units = to_unit(torch.tensor([0.0, math.pi / 2, math.pi, -math.pi / 2]))
    expected = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    torch.testing.assert_close(units, expected, atol=1e-6, rtol=0)


@wild
@given(angle=st.floats(0, TURN, exclude_max=True), length=st.floats(1e-3, 1e3))
def test_angle_to_unit_and_back_whatever_the_length(angle: float, length: float) -> None:
    back = from_unit(length * to_unit(torch.tensor(angle, dtype=torch.float64)))
    assert 0 <= back.item() < TURN
    assert angular_error(back, torch.tensor(angle, dtype=torch.float64)).item() < 1e-12


@dtypes
@pytest.mark.parametrize("below", [0.1, 1e-3, 1e-6, 1e-7, 1e-9, 1e-16, 1e-30])
def test_just_below_zero_comes_back_below_one_turn(below: float, dtype: torch.dtype) -> None:
    back = from_unit(to_unit(torch.tensor([-below], dtype=dtype)))
    assert 0 <= back.item() < TURN
    assert angular_error(back, torch.tensor(-below, dtype=dtype)).item() < 1e-6


# --- the circle loss -------------------------------------------------------------------------


def test_circle_loss_has_no_seam_at_zero() -> None:
    loss = circle_loss(
        torch.deg2rad(torch.tensor([359.9, 0.1])),
        to_unit(torch.deg2rad(torch.tensor([0.1, 359.9]))),
    )
    # 2 − 2·cos(0.2°)
    assert loss.tolist() == pytest.approx([1.218e-5, 1.218e-5], abs=1e-7)


@wild
@given(angle=finite, other=finite)
def test_circle_loss_of_unit_vectors_lies_between_0_and_4(angle: float, other: float) -> None:
    a, b = torch.tensor([angle, other], dtype=torch.float64)
    loss = circle_loss(a, to_unit(b)).item()
    assert 0 <= loss <= 4 + 1e-12


def test_circle_loss_reaches_4_opposite() -> None:
    assert circle_loss(torch.tensor(0.0), torch.tensor([-1.0, 0.0])).item() == 4


def test_circle_loss_exceeds_4_for_a_vector_that_is_not_unit() -> None:
    loss = circle_loss(torch.tensor(math.pi / 4), torch.tensor([-1.0, -1.0])).item()
    assert loss == pytest.approx((1 + math.sqrt(2)) ** 2, abs=1e-5)
    assert loss == pytest.approx(5.83, abs=5e-3)


def test_circle_loss_is_2_minus_2_cosine_of_the_distance() -> None:
    generator = torch.Generator().manual_seed(1)
    a, b = 20 * torch.rand(2, 1000, generator=generator, dtype=torch.float64) - 10
    expected = 2 - 2 * torch.cos(angular_error(a, b))
    torch.testing.assert_close(circle_loss(a, to_unit(b)), expected, atol=1e-12, rtol=0)


def test_gradient_points_from_the_true_point_to_the_vector() -> None:
    """The paper prints this gradient with the opposite sign."""
    generator = torch.Generator().manual_seed(2)
    angles = (10 * torch.rand(50, generator=generator, dtype=torch.float64)).requires_grad_()
    unit = torch.randn(50, 2, generator=generator, dtype=torch.float64).requires_grad_()
    circle_loss(angles, unit).sum().backward()
    with torch.no_grad():
        by_vector = 2 * (unit - torch.stack((angles.cos(), angles.sin()), dim=-1))
        by_angle = 2 * (unit[:, 0] * angles.sin() - unit[:, 1] * angles.cos())
    torch.testing.assert_close(unit.grad, by_vector)
    torch.testing.assert_close(angles.grad, by_angle)


def steepest_slope() -> float:
    """The largest change of the loss per change of the angle, over many random pairs."""
    generator = torch.Generator().manual_seed(3)
    first, answer = TURN * torch.rand(2, 20_000, generator=generator, dtype=torch.float64)
    second = first + torch.randn(20_000, generator=generator, dtype=torch.float64)
    unit = to_unit(answer)
    change = (circle_loss(first, unit) - circle_loss(second, unit)).abs()
    return (change / (first - second).abs()).max().item()


def test_lipschitz_constant_in_the_angle_is_2_and_no_less() -> None:
    assert 1.9 < steepest_slope() <= 2 + 1e-9


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicted", "true", "error"),
    [(359.9, 0.1, 0.2), (0.1, 359.9, 0.2), (0, 180, 180), (10, 350, 20), (725, 0, 5), (90, 90, 0)],
)
def test_angular_error_takes_the_shortest_way_round(
    predicted: float, true: float, error: float
) -> None:
    a, b = torch.deg2rad(torch.tensor([predicted, true], dtype=torch.float64))
    assert torch.rad2deg(angular_error(a, b)).item() == pytest.approx(error, abs=1e-9)


def test_paper_equivalent_of_one_flip_in_a_hundred() -> None:
    errors = torch.zeros(100, dtype=torch.float64)
    errors[7] = math.pi
    assert math.degrees(paper_equivalent(errors)) == pytest.approx(11.48, abs=5e-3)


def test_paper_equivalent_of_a_mean_loss_of_0_492() -> None:
    # Two errors whose losses average 0.492; the mean of the errors is another number.
    losses = torch.tensor([0.1, 0.884], dtype=torch.float64)
    errors = torch.arccos(1 - losses / 2)
    assert math.degrees(paper_equivalent(errors)) == pytest.approx(41.06, abs=5e-3)
    assert abs(math.degrees(errors.mean()) - 41.06) > 3


@pytest.mark.parametrize("degrees", [0, 1, 90, 180])
def test_paper_equivalent_of_equal_errors_is_that_error(degrees: float) -> None:
    errors = torch.full((5,), math.radians(degrees), dtype=torch.float64)
    assert math.degrees(paper_equivalent(errors)) == pytest.approx(degrees, abs=1e-5)
