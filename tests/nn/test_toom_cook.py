"""Convolutions of three taps in few products."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from radialbeams.nn.toom_cook import MOST, ONE, POINTS, TAPS, products, scheme


def convolved(values: torch.Tensor, taps: torch.Tensor, added: float = 0.0) -> torch.Tensor:
    """By the scheme: (size,) and (TAPS,) → (size,), `added` to the product of the point 1."""
    before, kernel, after = scheme(len(values))
    values = (before @ values).reshape(-1, len(kernel)) * (kernel @ taps)
    values[:, ONE] += added
    return after @ values.flatten()


@pytest.mark.parametrize("size", range(1, 15))
def test_the_scheme_gives_the_padded_convolution(size: int) -> None:
    generator = torch.Generator().manual_seed(size)
    values, taps = (torch.randn(count, generator=generator) for count in (size, TAPS))
    wanted = F.conv1d(values.double()[None, None], taps.double()[None, None], padding=1)[0, 0]
    torch.testing.assert_close(convolved(values, taps).double(), wanted, atol=2e-5, rtol=0)


def test_a_number_added_to_the_product_of_point_1_is_added_to_every_output() -> None:
    values, taps = torch.randn(8), torch.randn(TAPS)
    torch.testing.assert_close(convolved(values, taps, 0.5), convolved(values, taps) + 0.5)


def test_five_outputs_take_seven_products() -> None:
    assert len(POINTS) == MOST + TAPS - 2
    assert [len(scheme(size).before) for size in (1, 2, 5, 6, 10)] == [3, 4, 7, 10, 14]


def test_the_products_of_two_outputs_are_those_of_winograd() -> None:
    read, taps, made = products(2)  # points 0, 1, −1 and infinity
    np.testing.assert_allclose(taps, [[1, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 1]])
    np.testing.assert_allclose(made, [[1, 1, 1, 0], [0, 1, -1, 1]])
    np.testing.assert_allclose(
        read, [[1, 0, -1, 0], [0, 0.5, 0.5, 0], [0, -0.5, 0.5, 0], [0, -1, 0, 1]]
    )
