"""What a model's outputs mean: angle, confidence, symmetry. numpy only.

The ring gives a posterior over the circle; the paper's network gives one unit vector.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

WITHIN = 10.0  # degrees; confidence is the posterior mass this close to the answer
MOMENTS = 6  # the highest k-fold symmetry that is told apart
STRONG = 0.5  # length of a circular moment from which on it counts


@dataclass(frozen=True)
class Answer:
    """One picture's turn, counter-clockwise in [0, 360), and how sure the model is of it."""

    angle_degrees: float
    confidence: float | None = None
    symmetry: int | None = None
    posterior: Floats | None = None


def read_unit(unit: Floats) -> list[Answer]:
    """(N, 2) as (re, im)."""
    degrees = np.degrees(np.arctan2(unit[:, 1], unit[:, 0], dtype=np.float64))
    return [Answer(_in_circle(value)) for value in degrees]


def read_posterior(
    logits: Floats, offsets: Floats, temperature: float = 1.0, spread: float = 0.0
) -> list[Answer]:
    """Two of (N, |B|): logits, and what each beam adds to its own direction in beam steps.

    `temperature` and `spread` (degrees) are a card's calibration: how much too sure the logits
    are, and how far a beam's own answer may be off.
    """
    beams = logits.shape[1]
    angles = (np.arange(beams) + offsets) * (360 / beams)  # (N, |B|) degrees
    scaled = logits.astype(np.float64) / temperature
    mass = np.exp(scaled - scaled.max(1, keepdims=True))
    mass /= mass.sum(1, keepdims=True)
    best = np.take_along_axis(angles, mass.argmax(1)[:, None], 1)  # (N, 1)
    away = np.abs((angles - best + 180) % 360 - 180)
    confidences = (mass * _near(away, spread)).sum(1)
    symmetries = _symmetry(mass, angles)
    return [
        Answer(_in_circle(b), float(c), int(k), m.astype(np.float32))
        for b, c, k, m in zip(best[:, 0], confidences, symmetries, mass, strict=True)
    ]


def _near(away: NDArray[np.float64], spread: float) -> NDArray[np.float64]:
    """The share of each beam that lies within ±10°: all or nothing, or of a logistic bump."""
    if not spread:
        return (away <= WITHIN).astype(np.float64)
    below, above = ((edge - away) / spread for edge in (WITHIN, -WITHIN))
    share: NDArray[np.float64] = 1 / (1 + np.exp(-below)) - 1 / (1 + np.exp(-above))
    return share


def _in_circle(degrees: float) -> float:
    """In [0, 360): the remainder of a tiny negative number rounds up to 360 itself."""
    return float(degrees) % 360 % 360


def _symmetry(mass: NDArray[np.float64], angles: Floats) -> NDArray[np.int64]:
    """The smallest k whose circular moment is strong; 0 where none is."""
    orders = np.arange(1, MOMENTS + 1)[:, None, None]
    moments = np.abs((mass * np.exp(1j * orders * np.radians(angles))).sum(2))  # (MOMENTS, N)
    strong = moments >= STRONG
    found: NDArray[np.int64] = np.where(strong.any(0), strong.argmax(0) + 1, 0)
    return found
