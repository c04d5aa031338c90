"""What a run does to each picture, and the outcome."""

from __future__ import annotations

import os
import stat
from base64 import b64encode
from dataclasses import astuple, dataclass, replace
from io import BytesIO
from typing import Any, Literal

from radialbeams import images
from radialbeams.limits import DEFAULT, Limits
from radialbeams.posterior import Answer, Thresholds, decided, rounded

Action = Literal["turned", "left", "unsure", "exists"]

# Defaults where the model's card has none.
MIN_ANGLE = 1.0  # degrees; less is invisible, and turning costs some sharpness
MIN_CONFIDENCE = 0.5
MAX_UPRIGHT = 1.0  # no limit on the chance that a picture is upright already
THUMBNAIL = 160  # pixels
JPEG = b"\xff\xd8"


@dataclass(frozen=True)
class Job:
    """The settings of a run; all but the limits change the outputs."""

    model: str
    refine: int = 1
    first_frame: bool = False
    turns: bool = False  # else only angles are estimated
    writes: bool = False  # else a dry run
    in_place: bool = False
    force: bool = False  # in place, also where something would be lost
    overwrite: bool = False
    snap: bool = False  # to the nearest quarter turn
    exif: bool = False  # only by the orientation tag of a JPEG
    corners: images.Corners = "expand"
    fill: str | None = None
    min_confidence: float = MIN_CONFIDENCE
    min_angle: float = MIN_ANGLE
    max_upright: float = MAX_UPRIGHT
    document_confidence: float = MIN_CONFIDENCE  # for documents, in place of the three above
    document_angle: float = MIN_ANGLE
    quality: int | None = None
    format: str | None = None
    thumbnails: int = 0  # how many of the pictures get thumbnails, before and after
    limits: Limits = DEFAULT  # the only setting that an unfinished run may change

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Job:
        """The inverse of `dataclasses.asdict`."""
        return cls(**{**fields, "limits": Limits(**fields["limits"])})


@dataclass(frozen=True)
class Outcome:
    """The result for one file: an answer and an action, or an error in a sentence."""

    path: str
    out: str | None = None
    angle_ccw: float | None = None  # degrees in [0, 360), two decimals
    confidence: float | None = None
    symmetry: int | None = None
    judged_as: str | None = None  # a picture or a document
    action: Action | None = None  # None where only angles are estimated
    error: str | None = None
    sha256: str | None = None  # of the output that was made
    lost: str | None = None  # what was in the input and is not in the output
    before: str | None = None  # thumbnails, as data URIs
    after: str | None = None
    source: str | None = None  # in place: the stamp of the file that was read
    changed: bool = False  # it failed because that file has changed since, and stays as it is

    @property
    def kind(self) -> str:
        return "failed" if self.error is not None else self.action or "found"

    def record(self, model: str) -> dict[str, Any]:
        """The object that `--json` prints."""
        if self.error is not None:
            return {"path": self.path, "error": self.error}
        found = {
            "angle_ccw": self.angle_ccw,
            "confidence": self.confidence,
            "symmetry": self.symmetry,
            "kind": self.judged_as,
            "model": model,
        }
        if self.action is None:
            return {"path": self.path, **found}
        lost = {} if self.lost is None else {"lost": self.lost}
        return {"path": self.path, "out": self.out, **found, "action": self.action, **lost}


def thresholds_of(card: dict[str, Any]) -> Thresholds:
    return Thresholds(
        **{"confidence": MIN_CONFIDENCE, "angle": MIN_ANGLE, **card.get("abstain", {})}
    )


def refusal(path: str) -> str | None:
    """Why a path must not be opened: reading a pipe or a device may never end."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return None  # opening it raises the reason
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    return "It is a pipe or a device, not a file. Use - to read from standard input."


def outcome_of(path: str, out: str | None, answer: Answer) -> Outcome:
    confidence = None if answer.confidence is None else round(answer.confidence, 4)
    return Outcome(path, out, rounded(answer), confidence, answer.symmetry, answer.kind)


def action_for(answer: Answer, job: Job) -> Action:
    least = Thresholds(job.min_confidence, job.min_angle, job.max_upright)
    if answer.kind == "document":
        least = Thresholds(job.document_confidence, job.document_angle)
    found = decided(answer, least)
    return "left" if found == "turned" and _back(rounded(answer), job) == 0 else found


def upright(data: bytes, angle: float, job: Job) -> bytes:
    """The file turned back by its angle; quarter turns of a JPEG only change a tag."""
    if job.snap and data.startswith(JPEG) and job.format in (None, "jpeg"):
        return images.set_orientation(data, round(_back(angle, job) / 90))
    if job.exif:
        raise images.ImageError("Only a JPEG has the tag that --exif sets. Use --snap 90 instead.")
    picture = images.read(data, first_frame=job.first_frame, limits=job.limits)
    if job.in_place and picture.more and not job.force:
        raise images.ImageError(
            "It holds several pictures, and only the first would be left. Name an output with -o, "
            "or add --force to lose the others."
        )
    turned = images.turn(picture, _back(angle, job), corners=job.corners, fill=job.fill)
    return images.encode(turned, job.format, quality=job.quality)


def lost(before: bytes, after: bytes, job: Job) -> str | None:
    """What a turned file no longer holds; in place that is refused."""
    names = ", ".join(images.missing(before, after))
    if names and job.in_place and not job.force:
        raise images.ImageError(
            f"In place it would lose {names}. Name an output with -o, or add --force to lose it."
        )
    return names or None


def unchanged(data: bytes, job: Job) -> bytes:
    """The same bytes, or the picture in another format if the job has one."""
    if job.format is None:
        return data
    picture = images.read(data, first_frame=job.first_frame, limits=job.limits)
    if picture.format == job.format.upper():
        return data
    # The background in formats without alpha.
    picture = replace(picture, background=job.fill)
    return images.encode(picture, job.format, quality=job.quality)


def made(data: bytes, answer: Answer, job: Job) -> tuple[Action, bytes]:
    """The action for a file, and its bytes afterwards."""
    action = action_for(answer, job)
    if action == "turned":
        return action, upright(data, rounded(answer), job)
    return action, unchanged(data, job)


def thumbnail(data: bytes, job: Job) -> str:
    """A data URI; small pictures are not enlarged."""
    # An output on an enlarged canvas may exceed the limits that its input met.
    most = Limits(*(8 * value for value in astuple(job.limits)))
    small = images.read_small(data, THUMBNAIL, first_frame=job.first_frame, limits=most)
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    stream = BytesIO()
    small.save(stream, "WEBP", quality=70, method=2)
    return "data:image/webp;base64," + b64encode(stream.getvalue()).decode("ascii")


def _back(angle: float, job: Job) -> float:
    """Degrees counter-clockwise that undo the turn."""
    return float(-round(angle / 90) % 4 * 90) if job.snap else -angle % 360
