"""Explains the estimate for an image, and what is done with the image, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from radialbeams.posterior import UPRIGHT, signed

if TYPE_CHECKING:
    from radialbeams.batch import JobSettings, Outcome

SOURCES = {
    "angle": "by the estimated angle",
    "quarter": "by exactly that quarter turn",
    "frame": "by the angle of its rectangle",
    "hand": "by the angle in --corrections",
}
REASONS = {"no up": "no clear up was found"}  # the others are shown as they are
METHODS = {
    "exif": "Only its EXIF tag changes; its pixels stay the same.",
    "pixels": "Its pixels are moved, not resampled.",
    "encoded": "Its pixels are moved and encoded again, with a small loss.",
    "resampled": "Its pixels are resampled once.",
}


def explanation(outcome: Outcome, job: JobSettings) -> Iterator[str]:
    """The path, and then one sentence per line."""
    yield outcome.path
    if outcome.error is not None:
        yield f"  It failed. {outcome.error}"
        return
    if outcome.action == "exists":
        yield "  Its output already exists, so it was not read. --overwrite replaces it."
        return
    if outcome.problem is not None:
        yield f"  It is skipped. {outcome.problem}"
        return
    yield from (
        f"  {sentence}" for sentence in (*_estimate(outcome, job), *_decision(outcome, job))
    )


def _estimate(outcome: Outcome, job: JobSettings) -> Iterator[str]:
    model = "The document model" if outcome.document else f"The model {job.model}"
    sure = ""
    if outcome.confidence is not None:
        sure = (
            "; the probability that this is correct to within 10° is "
            f"{_percent(outcome.confidence)}"
        )
    yield f"{model} estimates a rotation of {_angle(outcome.angle_ccw or 0.0)}{sure}."
    # With a frame, the quarter turns start at its angle, and `_why` names the probability.
    counted = outcome.quarter is not None and outcome.frame_ccw is None
    if counted and outcome.quarter_confidence is not None:
        quarter = f"about {outcome.quarter}°" if outcome.quarter else "0° (upright)"
        probability = _percent(outcome.quarter_confidence)
        yield f"The most probable quarter turn is {quarter}, with probability {probability}."
    if outcome.symmetry is not None and outcome.symmetry != 1:
        yield _symmetry(outcome.symmetry)
    if outcome.frame_ccw is None:
        yield "It has no filled corners around a turned rectangle."
    else:
        yield (
            f"It is a rectangle on a plain canvas, turned by {_angle(outcome.frame_ccw)} plus a "
            "multiple of 90°."
        )


def _decision(outcome: Outcome, job: JobSettings) -> Iterator[str]:
    why = _why(outcome)
    if outcome.applied_ccw is None:
        if outcome.reason == "camera raw":
            yield (
                "It is left as it is: camera raw files are only read, through their preview. "
                "--format jpeg writes the preview upright."
            )
            return
        if outcome.measure == "exact":  # the model is sure, and the rule is the whole reason
            yield f"It is left as it is: {why.removeprefix(', since ')}."
            return
        yield f"It is left as it is: {_reason(outcome)}{why}."
        return
    turn = signed(outcome.applied_ccw)
    direction = "counter-clockwise" if turn > 0 else "clockwise"
    by_hand = outcome.measure == "hand"
    how = SOURCES.get("hand" if by_hand else outcome.applied_by or "", "")
    yield f"It is turned by {abs(turn):g}° {direction}, {how}{why}."
    if outcome.applied_by == "quarter" and not by_hand:
        yield from _remaining(outcome)
    if outcome.method is not None:
        yield METHODS[outcome.method]


def _reason(outcome: Outcome) -> str:
    """Why it is left alone; "upright already" includes tilts that are too small to undo."""
    if outcome.measure == "hand":
        return "--corrections says so"
    reason = outcome.reason or "unsure"
    tilt = abs(signed(outcome.angle_ccw or 0.0))
    if reason == "upright already" and outcome.measure in ("quarter", "angle") and tilt >= 1:
        return f"its estimated tilt is about {tilt:.0f}°, and small tilts are left alone"
    return REASONS.get(reason, reason)


def _remaining(outcome: Outcome) -> Iterator[str]:
    """What an exact quarter turn does not undo."""
    rest = signed((outcome.angle_ccw or 0.0) + (outcome.applied_ccw or 0.0))
    if abs(rest) > UPRIGHT:
        yield (
            f"According to the estimate, it is then still rotated by {_angle(rest)}; --snap none "
            "turns it by the estimated angle."
        )


def _why(outcome: Outcome) -> str:
    if outcome.value is None or outcome.threshold is None or outcome.measure is None:
        return ""
    value, limit = outcome.value, outcome.threshold
    if limit > 1 and outcome.measure in ("confidence", "quarter", "exact"):
        return (
            ", since the model's card says that it is not to be trusted; --min-confidence 0.5 "
            "turns pictures anyway"
        )
    if outcome.measure == "angle":
        return f", since {value:g}° is less than the minimum of {limit:g}°"
    number, bound = _distinct(value, limit)
    if outcome.measure == "upright":
        return (
            f", since the probability that it is upright is {number}, above the maximum of {bound}"
        )
    if outcome.measure == "exact":
        return (
            ", since it fills its canvas, where by default only quarter turns are applied, and the "
            f"probability of an exact quarter turn is {number} (minimum: {bound}); --snap none "
            "turns it by the estimated angle"
        )
    if outcome.measure == "frame":
        return (
            ", since a picture that was turned upright before looks the same, and the probability "
            f"that this one has the angle of its rectangle is {number} (minimum: {bound})"
        )
    enough = "reaches" if value >= limit else "is below"
    return f", since the probability of {_name(outcome)}, {number}, {enough} {bound}"


def _name(outcome: Outcome) -> str:
    """The name of the event whose probability decided."""
    if outcome.measure != "quarter":
        return "the angle"
    if outcome.frame_ccw is not None and outcome.applied_by != "quarter":
        return "this one of the rectangle's four directions"
    return "the quarter turn"


def _symmetry(symmetry: int) -> str:
    if symmetry == 0:
        return "No direction stands out as up."
    return f"It looks much the same every {360 / symmetry:g}°."


def _angle(degrees: float) -> str:
    turn = signed(degrees)
    return f"{abs(turn):.2f}° {'counter-clockwise' if turn >= 0 else 'clockwise'}"


def _percent(probability: float, digits: int = 3) -> str:
    return f"{100 * probability:.{digits}g}%"


def _distinct(value: float, limit: float) -> tuple[str, str]:
    """Both as percentages, with enough digits to distinguish them."""
    bound = _percent(limit)
    digits = next((n for n in range(3, 7) if value == limit or _percent(value, n) != bound), 7)
    return _percent(value, digits), bound
