"""Copies among many photos, by the number of bits in which their fingerprints differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

BITS = 128
SIDE = 16  # pixels of a thumbnail
TILE = 4096

Bits = NDArray[np.bool_]

_COSINES = np.cos(np.pi * np.arange(8)[:, None] * (np.arange(32) + 0.5) / 32)


def fingerprint(image: Image.Image) -> Bits:
    """128 bits of the whole picture at any aspect ratio: 64 slopes and 64 waves (dHash, pHash)."""
    small = image.convert("L").resize((32, 32), Image.Resampling.BOX)
    grey = np.asarray(small, np.float64)
    steps = np.asarray(small.resize((9, 8), Image.Resampling.LANCZOS), np.float64)
    waves = _COSINES @ grey @ _COSINES.T
    waves[0, 0] = 0.0  # brightness is not a feature
    slopes = steps[:, 1:] > steps[:, :-1]
    return np.concatenate([slopes.ravel(), (waves > np.median(waves)).ravel()])


def thumbnail(image: Image.Image) -> NDArray[np.uint8]:
    """(256,): grey levels of the whole picture, to check that two fingerprints match not by chance.

    Bilinear, because the pixels of a box filter depend on the size of the copy.
    """
    return np.asarray(image.convert("L").resize((SIDE, SIDE), Image.Resampling.BILINEAR)).ravel()


def near_earlier(bits: Bits, distance: int) -> NDArray[np.int64]:
    """For each row the first earlier row within `distance` bits, or −1."""
    nearest = np.full(len(bits), -1)
    for start in range(0, len(bits), TILE):
        rows = bits[start : start + TILE]
        first = first_near(rows, bits[:start], distance)
        among = within(rows, rows, distance)
        among &= np.tri(len(rows), k=-1, dtype=bool)
        own = np.where(among.any(axis=1), start + among.argmax(axis=1), -1)
        nearest[start : start + TILE] = np.where(first >= 0, first, own)
    return nearest


def first_near(bits: Bits, others: Bits, distance: int) -> NDArray[np.int64]:
    """For each row the first row of `others` within `distance` bits, or −1."""
    nearest = np.full(len(bits), -1)
    for above in range(0, len(bits), TILE):
        part = nearest[above : above + TILE]
        for left in range(0, len(others), TILE):
            near = within(bits[above : above + TILE], others[left : left + TILE], distance)
            hit = near.any(axis=1) & (part < 0)
            part[hit] = left + near[hit].argmax(axis=1)
    return nearest


def within(rows: Bits, columns: Bits, distance: int) -> Bits:
    """(rows, columns): which pairs differ in no more than `distance` bits."""
    # As ±1 the product of two rows is (equal bits − different bits), and a product is fast.
    products = _signs(rows) @ _signs(columns).T
    return np.asarray(products >= rows.shape[1] - 2 * distance)


def _signs(bits: Bits) -> NDArray[np.float32]:
    return np.where(bits, np.float32(1), np.float32(-1))
