"""What a model's outputs mean: angle, confidence, symmetry. numpy only.

The ring gives a posterior over the circle; the paper's network gives one unit vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

WITHIN = 10.0  # degrees; confidence is the posterior mass this close to the answer
UPRIGHT = 5.0  # degrees; a picture turned by less counts as upright
MOMENTS = 6  # the highest k-fold symmetry that is told apart
STRONG = 0.5  # length of a circular moment from which on it counts


@dataclass(frozen=True)
class Answer:
    """One picture's turn, counter-clockwise in [0, 360), and how sure the model is of it."""

    angle_degrees: float
    confidence: float | None = None
    symmetry: int | None = None
    posterior: Floats | None = None
    upright: float | None = None  # chance that the picture is within 5° of upright as it is
    exact: float | None = None  # chance that the turn is within 5° of a quarter turn, or of none
    # What looked: the model for pictures, or the one for pages, which are levelled by their lines.
    kind: Literal["picture", "document"] = "picture"


@dataclass(frozen=True)
class Thresholds:
    """From where on a picture is turned. A card's `abstain` may name any of them.

    The default of `quarter` was chosen for `ring` on 1,500 photos, of which 0.4 % would be turned
    by a wrong quarter if they were upright.
    """

    confidence: float = 0.5  # chance that the angle is within 10°, at least
    angle: float = 1.0  # degrees, at least: less is invisible, and turning costs some sharpness
    upright: float = 1.0  # chance that the picture is upright as it is, at most
    quarter: float = 0.98  # chance of the quarter that is nearest to the turn, at least
    # Chance that the turn is an exact quarter, at least, for a picture that fills its canvas to be
    # turned by a quarter; if it is less, the picture contradicts its own rectangle.
    exact: float = 0.02
    # Whether such a picture may be turned by another angle than a quarter.
    tilts: bool = False


class Calibration(NamedTuple):
    """By how much the logits are too sure, and how far a bin's own angle may be off."""

    temperature: float = 1.0
    spread: float = 0.0  # degrees


def rounded(answer: Answer) -> float:
    """To a hundredth, before anything follows from it: the last bits of a sum do not matter."""
    return round(answer.angle_degrees, 2) % 360


def signed(degrees: float) -> float:
    """The same angle in (−180, 180]."""
    return -((180 - degrees) % 360 - 180)


def quarter_masses(posterior: Floats, start: float = 0.0) -> NDArray[Any]:
    """(|B|,) → (4,): the mass nearest to `start`, `start` + 90°, + 180° and + 270°."""
    width = 360 / len(posterior)
    places = (np.arange(len(posterior)) * width - start + 45) % 360
    quarter, place = (places // 90).astype(int), places % 90
    # A direction stands for all up to half way to the next, on both sides of a border too.
    below = (0.5 - place / width).clip(0, 1)
    above = (0.5 - (90 - place) / width).clip(0, 1)
    mass = posterior.astype(np.float64)
    total: NDArray[Any] = (
        np.bincount(quarter, mass * (1 - below - above), 4)
        + np.bincount((quarter - 1) % 4, mass * below, 4)
        + np.bincount((quarter + 1) % 4, mass * above, 4)
    )
    return total


def read_unit(unit: Floats, turns: Floats | None = None) -> list[Answer]:
    """(N, 2) as (re, im); or (N, k, 2) of k views, turned by so many degrees, and averaged."""
    angles = np.arctan2(unit[..., 1], unit[..., 0], dtype=np.float64)
    if turns is not None:
        mean = np.exp(1j * (angles - np.radians(turns))).mean(1)
        angles = np.angle(mean)
    return [Answer(_in_circle(value)) for value in np.degrees(angles)]


def read_posterior(
    logits: Floats, offsets: Floats, temperature: float = 1.0, spread: float = 0.0
) -> list[Answer]:
    """Two of (N, |B|): logits, and what each beam adds to its own direction in beam steps.

    `temperature` and `spread` (degrees) are a card's calibration: how much too sure the logits
    are, and how far a beam's own answer may be off.
    """
    mass, angles = _mass(logits, temperature), _directions(offsets)
    best = np.take_along_axis(angles, mass.argmax(1)[:, None], 1)  # (N, 1)
    return _answers(best, mass, angles, spread, mass)


def read_posteriors(
    logits: Floats,
    offsets: Floats,
    shifts: Floats,
    temperature: float = 1.0,
    spread: float = 0.0,
) -> list[Answer]:
    """Two of (N, k, |B|): as above for k views of each picture, turned by `shifts` beam steps.

    The posteriors are brought back and averaged. The answer is the mean of the mass around that
    view's answer which most of all the mass is near: measured in results/refine.json.
    """
    count, views, beams = logits.shape
    mass, angles = _mass(logits, temperature), _directions(offsets - shifts[:, None])
    candidates = np.take_along_axis(angles, mass.argmax(2)[:, :, None], 2)  # (N, k, 1)
    posterior = _brought_back(mass, shifts)
    mass, angles = (x.reshape(count, views * beams) for x in (mass / views, angles))
    near = np.abs(_shortest(angles[:, None] - candidates)) <= WITHIN  # (N, k, k·|B|)
    first = (near * mass[:, None]).sum(2).argmax(1)  # (N,)
    lead = np.take_along_axis(candidates[:, :, 0], first[:, None], 1)  # (N, 1)
    weight = np.take_along_axis(near, first[:, None, None], 1)[:, 0] * mass
    mean = (weight * _shortest(angles - lead)).sum(1, keepdims=True)
    best = lead + mean / weight.sum(1, keepdims=True)
    return _answers(best, mass, angles, spread, posterior)


def _answers(
    best: Doubles, mass: Doubles, angles: Doubles, spread: float, posterior: Doubles
) -> list[Answer]:
    """(N, 1) degrees; two of (N, M): any number of masses and where they lie; (N, |B|)."""
    confidences = (mass * _near(np.abs(_shortest(angles - best)), spread, WITHIN)).sum(1)
    uprights = (mass * _near(np.abs(_shortest(angles)), spread, UPRIGHT)).sum(1)
    exacts = (mass * _near(np.abs((angles + 45) % 90 - 45), spread, UPRIGHT)).sum(1)
    symmetries = _symmetry(mass, angles)
    found = zip(best[:, 0], confidences, symmetries, posterior, uprights, exacts, strict=True)
    return [
        Answer(_in_circle(b), float(c), int(k), p.astype(np.float32), float(u), float(e))
        for b, c, k, p, u, e in found
    ]


def _mass(logits: Floats, temperature: float) -> Doubles:
    scaled = logits.astype(np.float64) / temperature
    mass = np.exp(scaled - scaled.max(-1, keepdims=True))
    total: Doubles = mass / mass.sum(-1, keepdims=True)
    return total


def _directions(offsets: Floats) -> Doubles:
    beams = offsets.shape[-1]
    degrees: Doubles = (np.arange(beams) + offsets) * (360 / beams)
    return degrees


def _brought_back(mass: Doubles, shifts: Floats) -> Doubles:
    """(N, k, |B|) → (N, |B|): mass between two beams is shared by them as it is near."""
    whole = np.floor(shifts).astype(int)
    part = (shifts - whole)[:, None]
    turned = np.stack([np.roll(mass[:, k], -w, axis=1) for k, w in enumerate(whole)], axis=1)
    shared: Doubles = (turned * (1 - part) + np.roll(turned, -1, axis=2) * part).mean(1)
    return shared


def _shortest(degrees: Doubles) -> Doubles:
    """In [−180, 180)."""
    return (degrees + 180) % 360 - 180


def _near(away: Doubles, spread: float, within: float) -> Doubles:
    """The share of each beam that lies so near: all or nothing, or of a logistic bump."""
    if not spread:
        return (away <= within).astype(np.float64)
    below, above = ((edge - away) / spread for edge in (within, -within))
    share: Doubles = 1 / (1 + np.exp(-below)) - 1 / (1 + np.exp(-above))
    return share


def _in_circle(degrees: float) -> float:
    """In [0, 360): the remainder of a tiny negative number rounds up to 360 itself."""
    return float(degrees) % 360 % 360


def read_quarters(mass: Doubles, skew_degrees: float, bins: int) -> Answer:
    """(4,) chances that a page, whose lines are `skew_degrees` from level, needs k quarter turns.

    Its posterior has `bins` directions, like those of pictures.
    """
    angles: Doubles = (skew_degrees - 90.0 * np.arange(4, dtype=np.float64)) % 360
    best = int(mass.argmax())
    places = np.rint(angles * bins / 360).astype(int) % bins
    posterior = np.bincount(places, mass, bins).astype(np.float32)
    upright = float(mass[np.abs(_shortest(angles)) <= UPRIGHT].sum())
    symmetry = int(_symmetry(mass[None], angles[None])[0])
    return Answer(
        _in_circle(angles[best]), float(mass[best]), symmetry, posterior, upright, kind="document"
    )


def _symmetry(mass: Doubles, angles: Doubles) -> NDArray[np.int64]:
    """The smallest k whose circular moment is strong; 0 where none is."""
    orders = np.arange(1, MOMENTS + 1)[:, None, None]
    moments = np.abs((mass * np.exp(1j * orders * np.radians(angles))).sum(2))  # (MOMENTS, N)
    strong = moments >= STRONG
    found: NDArray[np.int64] = np.where(strong.any(0), strong.argmax(0) + 1, 0)
    return found
