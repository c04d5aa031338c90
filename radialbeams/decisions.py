"""What becomes of a picture, and why: turned by which angle, or left alone for which reason.

The same function decides for files, library calls and transforms; the torch module follows it by
test. Angles are degrees, counter-clockwise as displayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from radialbeams.defaults import SNAP, Snap
from radialbeams.posterior import WITHIN, Answer, Thresholds, quarter_masses, rounded, signed

Action = Literal["turned", "left", "unsure"]
# Why a picture is left alone.
Reason = Literal["upright already", "unsure", "no up", "document without a clear quarter"]
# What the angle that is undone was taken from: the model, the nearest quarter turn, the rectangle
# of a picture with filled corners, or a correction by hand.
Source = Literal["angle", "quarter", "frame", "hand"]
Measure = Literal["confidence", "angle", "upright", "quarter", "exact", "hand"]

NEAR = 5.0  # degrees from a quarter turn within which no other angle is meant


@dataclass(frozen=True)
class Decision:
    """`turn` is the angle that is undone; it is None where the picture is left alone.

    `measure`, `value` and `threshold` are what decided it: the chance or the angle, and its limit.
    """

    turn: float | None
    source: Source | None = None
    reason: Reason | None = None
    measure: Measure = "confidence"
    value: float | None = None  # None: the model gives no chances, and counts as sure
    threshold: float = 0.0

    @property
    def action(self) -> Action:
        if self.turn is not None:
            return "turned"
        return "left" if self.reason == "upright already" else "unsure"


@dataclass(frozen=True)
class Surroundings:
    """What lies around a picture on its canvas."""

    frame: float | None = None  # the angle of its rectangle, up to quarter turns, where that shows
    plain: bool = False  # the corners have one colour, but no rectangle shows
    colour: str | None = None  # that colour, with which new corners are filled


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
        return _by_frame(answer, least, around.frame)
    if around.plain or answer.posterior is None:
        return _on_plain_ground(answer, least)
    return _filling(answer, least)


def by_hand(angle: float | None) -> Decision:
    """An angle that somebody corrected; None or 0 leaves the picture alone."""
    if not angle:
        return Decision(None, None, "upright already", "hand")
    return Decision(angle, "quarter" if angle % 90 == 0 else "hand", None, "hand")


def nearest_quarter(answer: Answer) -> tuple[int, float | None]:
    """The quarter turns that the picture has undergone, 0 to 3, and their chance if it is known."""
    return _quarter(answer, 0.0)


# --- the cases ---


def _by_quarter(answer: Answer, least: Thresholds) -> Decision:
    quarter, chance = nearest_quarter(answer)
    needed = _needed(answer, least)
    if not _reaches(chance, needed):
        return _left(answer, "quarter", chance, needed)
    return _turned_by_quarter(quarter, chance, needed)


def _as_estimated(answer: Answer, least: Thresholds) -> Decision:
    if not _reaches(answer.confidence, least.confidence):
        return _left(answer, "confidence", answer.confidence, least.confidence)
    away = abs(signed(rounded(answer)))
    if away < least.angle:
        return Decision(None, None, "upright already", "angle", away, least.angle)
    if answer.upright is not None and answer.upright > least.upright:
        return _left(answer, "upright", answer.upright, least.upright)
    return _turned(rounded(answer), "angle", answer, least)


def _by_frame(answer: Answer, least: Thresholds, frame: float) -> Decision:
    """The rectangle gives the angle, and the model the quarter, which is all that is left."""
    quarter, chance = _quarter(answer, frame)
    angle = (frame + 90 * quarter) % 360
    sure = _reaches(answer.confidence, least.confidence)
    if abs(signed(rounded(answer) - angle)) > WITHIN and sure and answer.confidence is not None:
        return _turned(rounded(answer), "angle", answer, least)  # tilted inside its rectangle
    if not _reaches(chance, least.confidence):
        return _left(answer, "quarter", chance, least.confidence)
    if abs(signed(angle)) < least.angle:
        return Decision(None, None, "upright already", "angle", abs(signed(angle)), least.angle)
    return Decision(round(angle, 2), "frame", None, "quarter", chance, least.confidence)


def _on_plain_ground(answer: Answer, least: Thresholds) -> Decision:
    """An object on a background lies at any angle, unless a quarter turn is as possible."""
    if answer.posterior is not None and not least.tilts and _reaches(answer.exact, least.exact):
        return _filling(answer, least)
    quarter = round(rounded(answer) / 90) % 4
    near = abs(signed(rounded(answer) - 90 * quarter)) <= NEAR
    return _by_quarter(answer, least) if quarter and near else _as_estimated(answer, least)


def _filling(answer: Answer, least: Thresholds) -> Decision:
    """A picture that fills its canvas is upright or turned by a quarter, nearly always."""
    quarter, chance = nearest_quarter(answer)
    angle = rounded(answer)
    sure = _reaches(answer.confidence, least.confidence)
    at_quarter = quarter != 0 and abs(signed(angle - 90 * quarter)) <= NEAR
    if least.tilts and sure and not at_quarter and abs(signed(angle)) >= least.angle:
        return _turned(angle, "angle", answer, least)
    if not _reaches(chance, least.quarter):
        return _left(answer, "quarter", chance, least.quarter)
    if not _reaches(answer.exact, least.exact):
        return _left(answer, "exact", answer.exact, least.exact)
    return _turned_by_quarter(quarter, chance, least.quarter)


def _document(answer: Answer, least: Thresholds, snap: Snap) -> Decision:
    """Levelled by its lines, so its angle is exact once its quarter is sure."""
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


# --- their parts ---


def _quarter(answer: Answer, start: float) -> tuple[int, float | None]:
    """Of the directions `start`, `start` + 90° and so on, the likeliest and its chance."""
    if answer.posterior is None:
        return round((rounded(answer) - start) / 90) % 4, answer.confidence
    masses = quarter_masses(answer.posterior, start)
    best = int(masses.argmax())
    return best, float(masses[best])


def _needed(answer: Answer, least: Thresholds) -> float:
    """The least chance of a quarter; without a posterior the confidence stands for it."""
    return least.quarter if answer.posterior is not None else least.confidence


def _reaches(chance: float | None, least: float) -> bool:
    """A model that knows no chances counts as sure, though not as more than certain."""
    return (1.0 if chance is None else chance) >= least


def _turned(angle: float, source: Source, answer: Answer, least: Thresholds) -> Decision:
    return Decision(angle, source, None, "confidence", answer.confidence, least.confidence)


def _turned_by_quarter(quarter: int, chance: float | None, needed: float) -> Decision:
    if quarter == 0:
        return Decision(None, None, "upright already", "quarter", chance, needed)
    return Decision(90.0 * quarter, "quarter", None, "quarter", chance, needed)


def _left(answer: Answer, measure: Measure, value: float | None, threshold: float) -> Decision:
    reason: Reason = "no up" if answer.symmetry == 0 else "unsure"
    return Decision(None, None, reason, measure, value, threshold)
