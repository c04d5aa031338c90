"""What was seen in a picture and what follows from it, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from radialbeams.posterior import signed

if TYPE_CHECKING:
    from radialbeams.batch import Job, Outcome

SOURCES = {
    "angle": "by the estimated angle",
    "quarter": "by exactly that quarter turn",
    "frame": "by the angle of its rectangle",
    "hand": "by the angle that was given by hand",
}
METHODS = {
    "exif": "Only its EXIF tag changes, and no pixel.",
    "pixels": "Its pixels are moved and not resampled.",
    "resampled": "Its pixels are resampled once.",
}


def explanation(outcome: Outcome, job: Job) -> Iterator[str]:
    """One sentence a line, the path first."""
    yield outcome.path
    if outcome.error is not None:
        yield f"  It failed. {outcome.error}"
        return
    if outcome.action == "exists":
        yield "  Its output exists already, so it was not looked at. --overwrite replaces it."
        return
    yield from (f"  {sentence}" for sentence in (*_seen(outcome, job), *_follows(outcome, job)))


def _seen(outcome: Outcome, job: Job) -> Iterator[str]:
    looked = "It was read as a page" if outcome.document else f"The model {job.model} looked at it"
    sure = ""
    if outcome.confidence is not None:
        sure = f"; the chance that this is right to within 10° is {_percent(outcome.confidence)}"
    yield f"{looked}: turned by {_angle(outcome.angle_ccw or 0.0)}{sure}."
    if outcome.quarter is not None and outcome.quarter_confidence is not None:
        quarter = f"a turn by about {outcome.quarter}°" if outcome.quarter else "upright"
        chance = _percent(outcome.quarter_confidence)
        yield f"Of the four quarters the likeliest is {quarter}, with a chance of {chance}."
    if outcome.symmetry is not None and outcome.symmetry != 1:
        yield _symmetry(outcome.symmetry)
    if outcome.frame_ccw is None:
        yield "It shows no filled corners around a turned rectangle."
    else:
        yield (
            f"It is a rectangle that lies turned by {_angle(outcome.frame_ccw)}, or by a quarter "
            "turn more, on a plain canvas."
        )


def _follows(outcome: Outcome, job: Job) -> Iterator[str]:
    why = _why(outcome)
    if outcome.applied_ccw is None:
        yield f"It is left alone: {outcome.reason or 'unsure'}{why}."
        return
    turn = signed(outcome.applied_ccw)
    way = "counter-clockwise" if turn > 0 else "clockwise"
    how = SOURCES.get(outcome.applied_by or "", "")
    yield f"It is turned by {abs(turn):g}° {way}, {how}{why}."
    if outcome.method is not None:
        yield METHODS[outcome.method]


def _why(outcome: Outcome) -> str:
    if outcome.value is None or outcome.threshold is None or outcome.measure is None:
        return ""
    value, limit = outcome.value, outcome.threshold
    if limit > 1 and outcome.measure in ("confidence", "quarter", "exact"):
        return (
            ", since the model's card says that it is not to be trusted; --min-confidence 0.5 "
            "turns pictures all the same"
        )
    if outcome.measure == "angle":
        return f", since {value:g}° is less than the {limit:g}° from which on it is turned"
    if outcome.measure == "upright":
        return (
            f", since the chance that it is upright is {_percent(value)}, and at most "
            f"{_percent(limit)} is allowed"
        )
    if outcome.measure == "exact":
        return (
            f", since it fills its canvas, but the chance of an exact quarter turn is only "
            f"{_percent(value)} ({_percent(limit)} is needed); --snap none turns it all the same"
        )
    name = "the quarter" if outcome.measure == "quarter" else "the angle"
    enough = "reaches" if value >= limit else "is less than"
    return f", since {_percent(value)} for {name} {enough} the {_percent(limit)} that is needed"


def _symmetry(symmetry: int) -> str:
    if symmetry == 0:
        return "No direction stands out as up."
    return f"It looks much the same every {360 / symmetry:g}°."


def _angle(degrees: float) -> str:
    turn = signed(degrees)
    return f"{abs(turn):.2f}° {'counter-clockwise' if turn >= 0 else 'clockwise'}"


def _percent(chance: float) -> str:
    return f"{100 * chance:.3g} %"
