"""Convolutions of three taps along a short axis in half the products (Toom–Cook, Winograd).

A convolution multiplies polynomials, and a polynomial is known from its values at a few points. So
sums of the inputs are multiplied by sums of the taps, one product for each point, and sums of the
products are the outputs: five outputs take 7 products instead of 15. The sums are small matrices,
solved for in float64. In float32, the result has four times the rounding error of the plain sum.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

TAPS = 3
MOST = 5  # outputs at once; with more, rounding errors grow
# The points, of which few outputs need only the first. The last product belongs to infinity: it is
# the product of the highest coefficients.
POINTS = (0.0, 1.0, -1.0, -0.5, -2.0, 2 / 3)
ONE = 1  # the index of the point 1: a number added to its product is added to every output


class Scheme(NamedTuple):
    """The sums, for a few outputs at once (a tile); tiles share their taps."""

    before: Tensor  # (tiles·products, size): of inputs
    taps: Tensor  # (products, TAPS): of taps
    after: Tensor  # (size, tiles·products): of products


def scheme(size: int) -> Scheme:
    """The sums for a convolution of `size` inputs, padded by one zero on either side."""
    return Scheme(*(torch.from_numpy(matrix).float() for matrix in _matrices(size)))


@lru_cache(maxsize=64)
def _matrices(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    tiles = math.ceil(size / MOST)
    each = math.ceil(size / tiles)
    input_sums, taps, output_sums = products(each)
    count = len(taps)
    before = np.zeros((tiles, count, tiles * each + TAPS - 1))
    after = np.zeros((tiles, each, tiles, count))
    for tile in range(tiles):
        before[tile, :, tile * each : tile * each + count] = input_sums
        after[tile, :, tile] = output_sums
    # Without the columns of the padding, and without outputs of the last tile past the end.
    inputs = before[:, :, 1 : size + 1].reshape(tiles * count, size)
    return inputs, taps, after.reshape(tiles * each, tiles * count)[:size]


def products(outputs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The sums of inputs, taps and products: (p, p), (p, TAPS) and (outputs, p).

    Output j is the sum of tap k times input j + k over all k.
    """
    count = outputs + TAPS - 1
    points = np.array(POINTS[: count - 1])
    tap_values, output_values = (_values(points, size) for size in (TAPS, outputs))
    # For any taps and inputs, the products must add up to the outputs: this gives the input sums.
    system = np.einsum("pj,pk->jkp", output_values, tap_values).reshape(-1, count)
    targets = [np.eye(count)[j + k] for j in range(outputs) for k in range(TAPS)]
    input_sums = np.linalg.lstsq(system, np.array(targets), rcond=None)[0]
    return input_sums.round(12), tap_values, output_values.T


def _values(points: np.ndarray, size: int) -> np.ndarray:
    """(p, size): from coefficients to the values at the points and at infinity."""
    return np.vstack((np.vander(points, size, increasing=True), np.eye(size)[-1]))
