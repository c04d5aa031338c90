"""Decides whether a picture is turned, by which angle, or for which reason it is left alone.

The same function decides for files, library calls and transforms; a test compares the torch module
with it. Angles are degrees, counter-clockwise as displayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from radialbeams.defaults import SNAP, Snap
from radialbeams.posterior import (
    WITHIN,
    Answer,
    Thresholds,
    mass_towards,
    quarter_masses,
    rounded,
    signed,
)

Action = Literal["turned", "left", "unsure"]
# Why a picture is left alone.
Reason = Literal[
    "upright already", "unsure", "no up", "document without a clear quarter", "camera raw"
]
# Where the angle to undo comes from: the model, the nearest quarter turn, the rectangle of a
# picture with filled corners, or a correction by a person.
AngleSource = Literal["angle", "quarter", "frame", "hand"]
Measure = Literal["confidence", "angle", "upright", "quarter", "exact", "frame", "hand"]

NEAR = 5.0  # degrees; an angle this close to a quarter turn counts as one
# The probability that a cut rectangle must have against an upright picture. Of 120 photos that were
# rotated on their own canvas by random angles, 92 are turned, and a second run turns one of them
# again. Without this rule it would be 97 and 81.
ROTATED = 0.7


@dataclass(frozen=True)
class Decision:
    """`turn` is the angle to undo, or None if the picture is left alone.

    `measure` names the quantity that decided, a probability or an angle; `value` is its value, and
    `threshold` the limit it was compared with.
    """

    turn: float | None
    source: AngleSource | None = None
    reason: Reason | None = None
    measure: Measure = "confidence"
    value: float | None = None  # None: the model gives no probabilities, and counts as sure
    threshold: float = 0.0

    @property
    def action(self) -> Action:
        if self.turn is not None:
            return "turned"
        return "left" if self.reason in ("upright already", "camera raw") else "unsure"


@dataclass(frozen=True)
class Surroundings:
    """What surrounds a picture on its canvas."""

    frame: float | None = None  # the angle of its rectangle, up to quarter turns, if visible
    cut: bool = False  # the canvas cuts off the corners of that rectangle
    plain: bool = False  # the corners have one colour
    colour: str | None = None  # that colour, which also fills new corners


FILLED = Surroundings()  # the picture fills its canvas


def decide(
    answer: Answer, least: Thresholds, snap: Snap = SNAP, around: Surroundings = FILLED
) -> Decision:
    if answer.kind == "document":
        return _document(answer, least, snap)
    if snap == "90":
        return _by_quarter(answer, least)
    if snap == "none":
        return _as_estimated(answer, least)
    if around.frame is not None:
        return _by_frame(answer, least, around.frame, around.cut)
    if around.plain or answer.posterior is None:
        return _on_plain_ground(answer, least)
    return _filling(answer, least)


def by_hand(angle: float | None) -> Decision:
    """The decision for an angle set by a person; None or 0 leaves the picture alone."""
    if not angle:
        return Decision(None, None, "upright already", "hand")
    return Decision(angle, "quarter" if angle % 90 == 0 else "hand", None, "hand")


def nearest_quarter(answer: Answer) -> tuple[int, float | None]:
    """The most probable number of quarter turns, 0 to 3, and its probability if known."""
    return _quarter(answer, 0.0)


# --- the cases ---


def _by_quarter(answer: Answer, least: Thresholds) -> Decision:
    quarter, probability = nearest_quarter(answer)
    needed = _needed(answer, least)
    if not _reaches(probability, needed):
        return _left(answer, "quarter", probability, needed)
    return _turned_by_quarter(quarter, probability, needed)


def _as_estimated(answer: Answer, least: Thresholds) -> Decision:
    if not _reaches(answer.confidence, least.confidence):
        return _left(answer, "confidence", answer.confidence, least.confidence)
    away = abs(signed(rounded(answer)))
    if away < least.angle:
        return Decision(None, None, "upright already", "angle", away, least.angle)
    if answer.upright is not None and answer.upright > least.upright:
        return _left(answer, "upright", answer.upright, least.upright)
    return _turned(rounded(answer), "angle", answer, least)


def _by_frame(answer: Answer, least: Thresholds, frame: float, cut: bool) -> Decision:
    """The rectangle gives the angle up to quarter turns, and the model the quarter turn."""
    quarter, probability = _quarter(answer, frame)
    angle = (frame + 90 * quarter) % 360
    near = WITHIN < abs(signed(angle)) <= 45 + WITHIN  # at about 45°, two directions are as near
    if near or (cut and quarter == 0):
        needed, rotated = _rotated_needed(least, cut), _rotated(answer, signed(angle))
        if rotated < needed:
            return _perhaps_restored(answer, least, rotated, needed)
    if _is_sure(answer, least) and abs(signed(rounded(answer) - angle)) > WITHIN:
        return _as_estimated(answer, least)  # the content is tilted inside it
    if not _reaches(probability, least.confidence):
        return _left(answer, "quarter", probability, least.confidence)
    if abs(signed(angle)) < least.angle:
        return Decision(None, None, "upright already", "angle", abs(signed(angle)), least.angle)
    return Decision(round(angle, 2), "frame", None, "quarter", probability, least.confidence)


def _perhaps_restored(answer: Answer, least: Thresholds, rotated: float, needed: float) -> Decision:
    """A picture that may be upright although its rectangle is rotated.

    A picture that was rotated by −a on its own canvas, and one that was rotated by a and then
    turned back, have the same filled corners. Only the content tells them apart. On an enlarged
    canvas, the picture may have been tilted inside its rectangle and then levelled.
    """
    tilted = _is_sure(answer, least) and abs(signed(rounded(answer))) > WITHIN
    if tilted or least.tilts:
        return _as_estimated(answer, least)
    if rotated < 0.5:
        return Decision(None, None, "upright already", "frame", rotated, needed)
    return _left(answer, "frame", rotated, needed)


def _on_plain_ground(answer: Answer, least: Thresholds) -> Decision:
    """An object on a plain background may have any angle, but an exact quarter turn is possible."""
    if answer.posterior is not None and not least.tilts and _reaches(answer.exact, least.exact):
        return _filling(answer, least)
    quarter = round(rounded(answer) / 90) % 4
    near = abs(signed(rounded(answer) - 90 * quarter)) <= NEAR
    return _by_quarter(answer, least) if quarter and near else _as_estimated(answer, least)


def _filling(answer: Answer, least: Thresholds) -> Decision:
    """A picture that fills its canvas is nearly always turned by a multiple of 90°."""
    quarter, probability = nearest_quarter(answer)
    angle = rounded(answer)
    sure = _reaches(answer.confidence, least.confidence)
    at_quarter = quarter != 0 and abs(signed(angle - 90 * quarter)) <= NEAR
    if least.tilts and sure and not at_quarter and abs(signed(angle)) >= least.angle:
        return _turned(angle, "angle", answer, least)
    exact = _reaches(answer.exact, least.exact)
    # A confident angle that is no quarter turn is itself the reason, whatever the nearest quarter.
    if not _reaches(probability, least.quarter) and (exact or not sure):
        return _left(answer, "quarter", probability, least.quarter)
    if not exact:
        return _left(answer, "exact", answer.exact, least.exact)
    return _turned_by_quarter(quarter, probability, least.quarter)


def _document(answer: Answer, least: Thresholds, snap: Snap) -> Decision:
    """A document is levelled by its lines, so only its quarter turn may be uncertain."""
    if not _reaches(answer.confidence, least.confidence):
        reason: Reason = "document without a clear quarter"
        return Decision(None, None, reason, "quarter", answer.confidence, least.confidence)
    angle = rounded(answer)
    quarter = round(angle / 90) % 4
    if snap == "90" or (snap == "auto" and abs(signed(angle - 90 * quarter)) < least.angle):
        return _turned_by_quarter(quarter, answer.confidence, least.confidence)
    if abs(signed(angle)) < least.angle:
        return Decision(None, None, "upright already", "angle", abs(signed(angle)), least.angle)
    return _turned(angle, "angle", answer, least)


# --- helpers ---


def _quarter(answer: Answer, start: float) -> tuple[int, float | None]:
    """The most probable k of the directions `start` + k·90°, and its probability."""
    if answer.posterior is None:
        return round((rounded(answer) - start) / 90) % 4, answer.confidence
    masses = quarter_masses(answer.posterior, start)
    best = int(masses.argmax())
    return best, float(masses[best])


def _rotated(answer: Answer, angle: float) -> float:
    """The probability that a picture is rotated by `angle`, in (−90, 90), and not upright."""
    if answer.posterior is None:
        return float(abs(signed(rounded(answer) - angle)) < abs(signed(rounded(answer))))
    return mass_towards(answer.posterior, angle)


def _rotated_needed(least: Thresholds, cut: bool) -> float:
    """The threshold for it: a caller who accepts less confidence also accepts less here."""
    return max(0.5, min(ROTATED, least.confidence)) if cut else 0.5


def _is_sure(answer: Answer, least: Thresholds) -> bool:
    """Whether the confidence is known, and reaches its threshold."""
    return answer.confidence is not None and answer.confidence >= least.confidence


def _needed(answer: Answer, least: Thresholds) -> float:
    """The threshold for a quarter turn; without a posterior, that for the confidence."""
    return least.quarter if answer.posterior is not None else least.confidence


def _reaches(probability: float | None, least: float) -> bool:
    """Whether a probability reaches its threshold; an unknown one (None) counts as 1."""
    return (1.0 if probability is None else probability) >= least


def _turned(angle: float, source: AngleSource, answer: Answer, least: Thresholds) -> Decision:
    return Decision(angle, source, None, "confidence", answer.confidence, least.confidence)


def _turned_by_quarter(quarter: int, probability: float | None, needed: float) -> Decision:
    if quarter == 0:
        return Decision(None, None, "upright already", "quarter", probability, needed)
    return Decision(90.0 * quarter, "quarter", None, "quarter", probability, needed)


def _left(answer: Answer, measure: Measure, value: float | None, threshold: float) -> Decision:
    reason: Reason = "no up" if answer.symmetry == 0 else "unsure"
    return Decision(None, None, reason, measure, value, threshold)
