"""Interprets the outputs of a model as angle, confidence and symmetry. numpy only.

The ring returns a posterior over the circle; the paper's network returns one unit vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

WITHIN = 10.0  # degrees; confidence is the posterior mass this close to the estimate
UPRIGHT = 5.0  # degrees; a picture rotated by less counts as upright
MOMENTS = 6  # the highest k-fold symmetry that is detected
STRONG = 0.5  # a circular moment of at least this length counts


@dataclass(frozen=True)
class Answer:
    """The estimate for one picture: its rotation, counter-clockwise in [0, 360), and confidence."""

    angle_degrees: float
    confidence: float | None = None
    symmetry: int | None = None
    posterior: Floats | None = None
    upright: float | None = None  # probability that the picture is within 5° of upright
    exact: float | None = None  # probability that the rotation is within 5° of a multiple of 90°
    # Which network made the estimate: the model, or the one for pages, levelled by their lines.
    kind: Literal["picture", "document"] = "picture"


@dataclass(frozen=True)
class Thresholds:
    """The thresholds for turning a picture. A card's `abstain` may set any of them.

    The default of `quarter` was chosen for `ring` on 1,500 photos: 0.4 % of them would be turned by
    a wrong quarter turn if they were upright.
    """

    confidence: float = 0.5  # minimum probability that the angle is within 10°
    angle: float = 1.0  # minimum in degrees: less is invisible, and turning costs some sharpness
    upright: float = 1.0  # maximum probability that the picture is already upright
    quarter: float = 0.98  # minimum probability of the nearest quarter turn
    # Minimum probability that the rotation is an exact multiple of 90°, for a picture that fills
    # its canvas. If it is less, the content contradicts the rectangle of the picture.
    exact: float = 0.02
    # Whether such a picture may be turned by other angles than multiples of 90°.
    tilts: bool = False


class Calibration(NamedTuple):
    """Corrects overconfident logits, and gives the uncertainty of a bin's own angle."""

    temperature: float = 1.0
    spread: float = 0.0  # degrees


def rounded(answer: Answer) -> float:
    """The angle rounded to a hundredth, so that decisions do not depend on rounding errors."""
    return round(answer.angle_degrees, 2) % 360


def signed(degrees: float) -> float:
    """The same angle in (−180, 180]."""
    return -((180 - degrees) % 360 - 180)


def quarter_masses(posterior: Floats, start: float = 0.0) -> NDArray[Any]:
    """(|B|,) → (4,): the mass nearest to `start`, `start` + 90°, + 180° and + 270°."""
    width = 360 / len(posterior)
    places = (np.arange(len(posterior)) * width - start + 45) % 360
    quarter, place = (places // 90).astype(int), places % 90
    # A bin extends half-way to its neighbours, so a bin on a border is shared by two quarters.
    below = (0.5 - place / width).clip(0, 1)
    above = (0.5 - (90 - place) / width).clip(0, 1)
    mass = posterior.astype(np.float64)
    total: NDArray[Any] = (
        np.bincount(quarter, mass * (1 - below - above), 4)
        + np.bincount((quarter - 1) % 4, mass * below, 4)
        + np.bincount((quarter + 1) % 4, mass * above, 4)
    )
    return total


def mass_towards(posterior: Floats, angle: float) -> float:
    """The share of the mass near 0° and near `angle`, in (−90, 90), that is nearer to `angle`."""
    width = 360 / len(posterior)
    places = (np.arange(len(posterior)) * width + 180) % 360 - 180
    along = places * (1 if angle >= 0 else -1)  # 0° is at 0, `angle` at its absolute value
    # As above, a bin on the border is shared.
    nearer = ((along - abs(angle) / 2) / width + 0.5).clip(0, 1)
    mass = posterior.astype(np.float64) * (np.abs(along - abs(angle) / 2) <= 45 + abs(angle) / 2)
    return float((mass * nearer).sum() / max(mass.sum(), 1e-12))


def read_unit(unit: Floats, turns: Floats | None = None) -> list[Answer]:
    """Estimates from (N, 2) as (re, im), or the average of k views (N, k, 2) rotated by `turns`."""
    angles = np.arctan2(unit[..., 1], unit[..., 0], dtype=np.float64)
    if turns is not None:
        mean = np.exp(1j * (angles - np.radians(turns))).mean(1)
        angles = np.angle(mean)
    return [Answer(_in_circle(value)) for value in np.degrees(angles)]


def read_posterior(
    logits: Floats, offsets: Floats, temperature: float = 1.0, spread: float = 0.0
) -> list[Answer]:
    """Estimates from two of (N, |B|): logits, and the offset of each beam's angle in beam steps.

    `temperature` and `spread` (degrees) are a card's calibration: the overconfidence of the logits,
    and the uncertainty of a beam's own angle.
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
    """Estimates from two of (N, k, |B|): k views of each picture, rotated by `shifts` beam steps.

    The posteriors are shifted back and averaged. Of the k estimates, the one with the most mass
    nearby is taken, and refined to the mean of that mass. results/refine.json measures it.
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
    """From angles (N, 1) in degrees, masses and their angles (N, M) each, posteriors (N, |B|)."""
    confidences = (mass * _near(np.abs(_shortest(angles - best)), spread, WITHIN)).sum(1)
    uprights = (mass * _near(np.abs(_shortest(angles)), spread, UPRIGHT)).sum(1)
    exacts = (mass * _near(np.abs((angles + 45) % 90 - 45), spread, UPRIGHT)).sum(1)
    symmetries = _symmetry(mass, angles)
    rows = zip(best[:, 0], confidences, symmetries, posterior, uprights, exacts, strict=True)
    return [
        Answer(_in_circle(b), float(c), int(k), p.astype(np.float32), float(u), float(e))
        for b, c, k, p, u, e in rows
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
    """(N, k, |B|) → (N, |B|): shifts back and averages, with linear interpolation between beams."""
    whole = np.floor(shifts).astype(int)
    part = (shifts - whole)[:, None]
    turned = np.stack([np.roll(mass[:, k], -w, axis=1) for k, w in enumerate(whole)], axis=1)
    shared: Doubles = (turned * (1 - part) + np.roll(turned, -1, axis=2) * part).mean(1)
    return shared


def _shortest(degrees: Doubles) -> Doubles:
    """The same angles in [−180, 180)."""
    return (degrees + 180) % 360 - 180


def _near(away: Doubles, spread: float, within: float) -> Doubles:
    """The share of each beam within that distance: 0 or 1, or the part of a logistic bump."""
    if not spread:
        return (away <= within).astype(np.float64)
    below, above = ((edge - away) / spread for edge in (within, -within))
    share: Doubles = 1 / (1 + np.exp(-below)) - 1 / (1 + np.exp(-above))
    return share


def _in_circle(degrees: float) -> float:
    """The same angle in [0, 360). Twice, as the remainder of a tiny negative number may be 360."""
    return float(degrees) % 360 % 360


def read_quarters(mass: Doubles, skew_degrees: float, bins: int) -> Answer:
    """The estimate for a page whose lines are `skew_degrees` from level.

    `mass` (4,) is the probability that it needs k quarter turns. The posterior gets `bins`
    directions, like those of pictures.
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
    """(N,): the smallest k whose circular moment is strong; 0 if none is."""
    orders = np.arange(1, MOMENTS + 1)[:, None, None]
    moments = np.abs((mass * np.exp(1j * orders * np.radians(angles))).sum(2))  # (MOMENTS, N)
    strong = moments >= STRONG
    symmetry: NDArray[np.int64] = np.where(strong.any(0), strong.argmax(0) + 1, 0)
    return symmetry
