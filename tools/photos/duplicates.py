"""Copies among many photos, by the number of bits in which their fingerprints differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TILE = 4096

Bits = NDArray[np.bool_]


def near_earlier(bits: Bits, distance: int) -> NDArray[np.int64]:
    """For each row the first earlier row within `distance` bits, or −1."""
    found = np.full(len(bits), -1)
    for start in range(0, len(bits), TILE):
        rows = bits[start : start + TILE]
        first = first_near(rows, bits[:start], distance)
        among = _within(rows, rows, distance)
        among &= np.tri(len(rows), k=-1, dtype=bool)
        own = np.where(among.any(axis=1), start + among.argmax(axis=1), -1)
        found[start : start + TILE] = np.where(first >= 0, first, own)
    return found


def first_near(bits: Bits, others: Bits, distance: int) -> NDArray[np.int64]:
    """For each row the first row of `others` within `distance` bits, or −1."""
    found = np.full(len(bits), -1)
    for above in range(0, len(bits), TILE):
        part = found[above : above + TILE]
        for left in range(0, len(others), TILE):
            near = _within(bits[above : above + TILE], others[left : left + TILE], distance)
            hit = near.any(axis=1) & (part < 0)
            part[hit] = left + near[hit].argmax(axis=1)
    return found


def _within(rows: Bits, columns: Bits, distance: int) -> Bits:
    # As ±1 the product of two rows is (equal bits − different bits), and a product is fast.
    products = _signs(rows) @ _signs(columns).T
    return np.asarray(products >= rows.shape[1] - 2 * distance)


def _signs(bits: Bits) -> NDArray[np.float32]:
    return np.where(bits, np.float32(1), np.float32(-1))
