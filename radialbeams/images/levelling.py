"""Measures the skew of a page, modulo 90°, from its lines of text and ruled edges.

By the projection-slice theorem, the projection of a page along a direction corresponds to a ray of
its Fourier transform. Text lines, rules and edges make two rays at right angles stand out. The
method needs one FFT and no model. It reports by how much the best rays stand out, so that a photo
without lines is recognised as such.

Convention: the skew is the angle by which the page is rotated counter-clockwise, as displayed, from
the nearest position with horizontal or vertical lines. Rotating the image clockwise by the skew
levels the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

SIDE = 640  # pixels of the square that is transformed
LOWEST, HIGHEST = 0.035, 0.36  # cycles per pixel: between the layout and the pixel noise
WIDTH = int(HIGHEST * SIDE) + 2  # columns of the spectrum that the rays need
COARSE, FINE = 0.25, 0.05  # degrees
CLIP = 48.0  # gray levels; a single dark edge must not outweigh a page of text
EVIDENCE = 15.0  # deviations by which a ray must stand out; set on rendered pages and photos
LEVEL_EVIDENCE = 8.0  # the same for rays within half a degree of level, as of any small screen
# If the best ray is weak, level lines are preferred when they have this share of its height. In 500
# rendered screens, level ones have 0.76 and more where it matters, and rotated ones at most 0.29.
WEAK, NEARLY = 40.0, 0.4


@dataclass(frozen=True)
class Levelling:
    """The skew in degrees, within ±45, and how clearly the lines of the page show it."""

    skew_degrees: float
    strength: float  # energy of the best rays above the median, in robust standard deviations
    horizontal: bool = True  # whether the lines of the levelled page seem horizontal, not vertical

    @property
    def has_evidence(self) -> bool:
        level = abs(self.skew_degrees) < 0.5
        return self.strength >= (LEVEL_EVIDENCE if level else EVIDENCE)


def measure_skew(
    page: Image.Image, *, around_degrees: float = 0.0, within_degrees: float = 45.0
) -> Levelling:
    """The skew of the strongest lines within `within_degrees` of `around_degrees`, modulo 90°."""
    if not 0 < within_degrees <= 45:
        raise ValueError(f"Expected within_degrees above 0 and up to 45; got {within_degrees}.")
    amplitude = spectrum(_detail(page))
    angles = np.arange(-45, 45, COARSE)
    rays = amplitude.take(_places())  # (angles, 2 · radii)
    energy = rays.mean(axis=1)
    height = energy - _baseline(energy)
    apart = (angles - around_degrees + 45) % 90 - 45
    allowed = np.where(np.abs(apart) <= within_degrees, height, -np.inf)
    best = int(np.argmax(allowed))
    noise = 1.4826 * float(np.median(np.abs(height - np.median(height)))) + 1e-9
    strength = float(allowed.max() - np.median(height)) / noise
    level = int(np.argmax(np.where(np.abs(angles) <= COARSE, allowed, -np.inf)))
    if strength < WEAK and allowed[level] >= NEARLY * allowed[best]:
        best = level
    quarters, skew = divmod(_refined(amplitude, float(angles[best])) + 45, 90)
    down, across = np.split(rays[best], 2)  # frequencies along y, then along x
    horizontal = bool(down.max() >= across.max()) == (quarters % 2 == 0)
    return Levelling(skew - 45, strength if amplitude.any() else 0.0, horizontal)


def _detail(page: Image.Image) -> NDArray[np.float32]:
    """(H, W), the longer of them SIDE: the page without its shades, its border faded out."""
    gray = page if page.mode == "L" else page.convert("L")
    scale = SIDE / max(gray.size)
    size = max(1, round(gray.width * scale)), max(1, round(gray.height * scale))
    small = gray.resize(size, Image.Resampling.BILINEAR, reducing_gap=2.0)
    smooth = small.filter(ImageFilter.BoxBlur(8))
    detail = np.asarray(small, np.float32) - np.asarray(smooth, np.float32)
    faded = _window(size[1])[:, None] * _window(size[0])
    return np.clip(detail, -CLIP, CLIP) * faded


def spectrum(detail: NDArray[np.float32]) -> NDArray[np.float32]:
    """(SIDE, WIDTH): the part of the amplitudes of a picture of up to SIDE × SIDE that is used."""
    rows = np.fft.rfft(detail, SIDE, axis=1)[:, :WIDTH]
    return np.abs(np.fft.fft(rows, SIDE, axis=0)).astype(np.float32)


@lru_cache(maxsize=64)
def _window(length: int) -> NDArray[np.float32]:
    """1 inside, falling to 0 at both ends, so that the border of the image is not a line."""
    edge = np.minimum(np.arange(length) + 0.5, length - np.arange(length) - 0.5) / (0.12 * length)
    window: NDArray[np.float32] = (np.sin(np.pi / 2 * np.minimum(edge, 1)) ** 2).astype(np.float32)
    return window


def _rays(angles: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Frequencies (x, y) of the two rays at right angles for each angle: (angles, 2 · radii)."""
    radii = np.arange(LOWEST * SIDE, HIGHEST * SIDE)
    turn = np.radians(angles)[:, None]
    x = np.concatenate((np.sin(turn) * radii, np.cos(turn) * radii), axis=1)
    y = np.concatenate((np.cos(turn) * radii, -np.sin(turn) * radii), axis=1)
    return np.where(x < 0, -x, x), np.where(x < 0, -y, y)  # the other half is its mirror image


@cache
def _places() -> NDArray[np.intp]:
    """Flat indices of the nearest amplitudes on the coarse rays."""
    x, y = _rays(np.arange(-45, 45, COARSE))
    return (np.rint(y).astype(np.intp) % SIDE) * WIDTH + np.rint(x).astype(np.intp)


def _baseline(energy: NDArray[np.float32]) -> NDArray[np.float32]:
    """The median over ±6° on the circle of 90°: the broad background of strokes and noise."""
    reach = round(6 / COARSE)
    ring = np.concatenate((energy[-reach:], energy, energy[:reach]))
    windows = np.lib.stride_tricks.sliding_window_view(ring, 2 * reach + 1)
    return np.asarray(np.median(windows, axis=1), np.float32)


def _refined(amplitude: NDArray[np.float32], best: float) -> float:
    """The centre of the ridge near the best coarse angle."""
    angles: NDArray[np.float64] = best + np.arange(-12.0, 13.0) * FINE
    x, y = _rays(angles)
    left, top = np.floor(x).astype(np.intp), np.floor(y).astype(np.intp)
    across, down = x - left, y - top
    rows, right = (top % SIDE, (top + 1) % SIDE), left + 1
    upper = amplitude[rows[0], left] * (1 - across) + amplitude[rows[0], right] * across
    lower = amplitude[rows[1], left] * (1 - across) + amplitude[rows[1], right] * across
    energy = (upper * (1 - down) + lower * down).mean(axis=1)
    weight = np.clip(energy - np.quantile(energy, 0.6), 0, None)
    return float((angles * weight).sum() / weight.sum()) if weight.any() else best
