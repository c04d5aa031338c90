"""Explains in sentences what was found in an image, and what is done to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from radialbeams.posterior import signed

if TYPE_CHECKING:
    from radialbeams.batch import JobSettings, Outcome

SOURCES = {
    "angle": "by the estimated angle",
    "quarter": "by exactly that quarter turn",
    "frame": "by the angle of its rectangle",
    "hand": "by the angle in --corrections",
}
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
    yield from (f"  {sentence}" for sentence in (*_seen(outcome, job), *_follows(outcome, job)))


def _seen(outcome: Outcome, job: JobSettings) -> Iterator[str]:
    by = "As a document page, it was" if outcome.document else f"By the model {job.model}, it was"
    sure = ""
    if outcome.confidence is not None:
        sure = (
            "; the probability that this is correct to within 10° is "
            f"{_percent(outcome.confidence)}"
        )
    yield f"{by} turned by {_angle(outcome.angle_ccw or 0.0)}{sure}."
    if outcome.quarter is not None and outcome.quarter_confidence is not None:
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


def _follows(outcome: Outcome, job: JobSettings) -> Iterator[str]:
    why = _why(outcome)
    if outcome.applied_ccw is None:
        if outcome.reason == "camera raw":
            yield (
                "It is left as it is: camera raw files are only read, through their preview. "
                "--format jpeg writes the preview upright."
            )
            return
        yield f"It is left as it is: {outcome.reason or 'unsure'}{why}."
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
        return f", since {value:g}° is less than the minimum of {limit:g}°"
    if outcome.measure == "upright":
        return (
            f", since the probability that it is upright is {_percent(value)}, above the maximum "
            f"of {_percent(limit)}"
        )
    if outcome.measure == "exact":
        return (
            f", since it fills its canvas, but the probability of an exact quarter turn is only "
            f"{_percent(value)} (minimum: {_percent(limit)}); --snap none turns it anyway"
        )
    name = "the quarter turn" if outcome.measure == "quarter" else "the angle"
    enough = "reaches" if value >= limit else "is below"
    return f", since the probability of {name}, {_percent(value)}, {enough} {_percent(limit)}"


def _symmetry(symmetry: int) -> str:
    if symmetry == 0:
        return "No direction stands out as up."
    return f"It looks much the same every {360 / symmetry:g}°."


def _angle(degrees: float) -> str:
    turn = signed(degrees)
    return f"{abs(turn):.2f}° {'counter-clockwise' if turn >= 0 else 'clockwise'}"


def _percent(probability: float) -> str:
    return f"{100 * probability:.3g} %"
