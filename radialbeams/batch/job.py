"""What a run does to each picture, and the outcome."""

from __future__ import annotations

import os
import stat
from base64 import b64encode
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from io import BytesIO
from typing import Any, Literal

from radialbeams import decisions, images
from radialbeams.cards import Card
from radialbeams.decisions import FILLED, Decision, Surroundings, decide, nearest_quarter
from radialbeams.defaults import (
    CORNERS,
    FILL,
    LOOKS,
    SNAP,
    Abstain,
    Corners,
    Snap,
    thresholds_for,
    thresholds_of,
)
from radialbeams.documents import document_thresholds
from radialbeams.images import Frame
from radialbeams.limits import DEFAULT, Limits
from radialbeams.posterior import Answer, Thresholds, rounded, signed
from radialbeams.undoing import Undo, turned

Action = Literal["turned", "left", "unsure", "exists"]
# How a picture was turned: by the EXIF tag alone, by moving its pixels, or by resampling them.
Method = Literal["exif", "pixels", "resampled"]

THUMBNAIL = 240  # pixels
DIAL = 72  # most directions of the posterior that a report shows
JPEG = b"\xff\xd8"
_LEAST = Thresholds()


@dataclass(frozen=True)
class Job:
    """The settings of a run; all but the limits change the outputs."""

    model: str
    refine: int = LOOKS
    first_frame: bool = False
    turns: bool = False  # else only angles are estimated
    writes: bool = False  # else a dry run
    in_place: bool = False
    backup: bool = False  # in place, the original stays as NAME.orig
    force: bool = False  # in place, also where something would be lost
    overwrite: bool = False
    copies: bool = True  # what is left alone is copied to where its output goes
    snap: Snap = SNAP
    exif: bool = False  # only by the orientation tag of a JPEG
    corners: Corners = CORNERS
    fill: str | None = FILL
    min_confidence: float = _LEAST.confidence
    min_angle: float = _LEAST.angle
    max_upright: float = _LEAST.upright
    min_quarter: float = _LEAST.quarter
    min_exact: float = _LEAST.exact
    tilts: bool = _LEAST.tilts
    document_confidence: float = _LEAST.confidence  # for documents, in place of all of the above
    document_angle: float = _LEAST.angle
    quality: int | None = None
    format: str | None = None
    thumbnails: int = 0  # how many of the pictures get thumbnails, before and after
    # Angles by hand, by the paths of their files; None: the file is left alone.
    corrections: tuple[tuple[str, float | None], ...] = ()
    limits: Limits = DEFAULT  # the only setting that an unfinished run may change

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Job:
        """The inverse of `dataclasses.asdict`."""
        corrections = tuple((path, angle) for path, angle in fields["corrections"])
        return cls(**{**fields, "corrections": corrections, "limits": Limits(**fields["limits"])})

    @property
    def thresholds(self) -> Thresholds:
        return Thresholds(
            self.min_confidence,
            self.min_angle,
            self.max_upright,
            self.min_quarter,
            self.min_exact,
            self.tilts,
        )

    @property
    def document_thresholds(self) -> Thresholds:
        return Thresholds(self.document_confidence, self.document_angle)

    @cached_property
    def corrected(self) -> dict[str, float | None]:
        return dict(self.corrections)

    def decision(self, answer: Answer, around: Surroundings, path: str = "") -> Decision:
        if path in self.corrected:
            return decisions.by_hand(self.corrected[path])
        least = self.document_thresholds if answer.kind == "document" else self.thresholds
        return decide(answer, least, self.snap, around)


def with_thresholds(
    job: Job, card: Card, confidence: float | None = None, angle: float | None = None
) -> Job:
    """The job with the thresholds of its model's card, or with those that are asked for instead.

    A confidence replaces all chances of the card.
    """
    abstain: Abstain = "card" if confidence is None else confidence
    least, pages = thresholds_for(card, abstain), document_thresholds(abstain)
    return replace(
        job,
        min_confidence=least.confidence,
        min_angle=thresholds_of(card).angle if angle is None else angle,
        max_upright=least.upright,
        min_quarter=least.quarter,
        min_exact=least.exact,
        tilts=least.tilts,
        document_confidence=pages.confidence,
        document_angle=document_thresholds("card").angle if angle is None else angle,
    )


# Settings that older versions did not know, and that follow from the command and the model.
FOLLOWING = (
    *("copies", "min_quarter", "min_exact", "tilts"),
    *("document_confidence", "document_angle"),
)


def settings_of_older(noted: dict[str, Any], job: Job, defaults: dict[str, Any]) -> dict[str, Any]:
    """The settings in the journal of an older version, in the words of this one.

    What the older version did not know has its default, or what follows from the command and the
    model alone. Its default for the canvas was `expand`, and not to snap.
    """
    if "copies" in noted:
        return noted
    follows = {name: getattr(job, name) for name in FOLLOWING}
    found = {**defaults, **follows, **noted}
    if found["snap"] is False:
        found["snap"] = "auto" if job.snap == "auto" else "none"
    elif found["snap"] is True:
        found["snap"] = "90"
    if found["corners"] == "expand" and job.corners == "restore":
        found["corners"] = job.corners
    return found


@dataclass(frozen=True)
class Outcome:
    """The result for one file: an answer and an action, or an error in a sentence."""

    path: str
    out: str | None = None
    angle_ccw: float | None = None  # degrees in [0, 360), two decimals
    confidence: float | None = None
    symmetry: int | None = None
    action: Action | None = None  # None where only angles are estimated
    error: str | None = None
    reason: str | None = None  # why it was left alone
    measure: str | None = None  # the name of what decided that, its value, and the limit for it
    value: float | None = None
    threshold: float | None = None
    quarter: int | None = None  # 0, 90, 180 or 270: the likeliest quarter, and its chance
    quarter_confidence: float | None = None
    applied_ccw: float | None = None  # degrees by which the picture was turned
    applied_by: str | None = None  # what that was taken from: angle, quarter, frame or hand
    method: Method | None = None
    frame_ccw: float | None = None  # the turn of its rectangle on a plain canvas, up to quarters
    document: bool = False  # it was read as a page and not as a picture
    dial: str | None = None  # the posterior for a report, a hexadecimal digit for each direction
    sha256: str | None = None  # of the output that was made
    lost: str | None = None  # what was in the input and is not in the output
    before: str | None = None  # thumbnails, as data URIs
    after: str | None = None
    source: str | None = None  # in place: the stamp of the file that was read
    changed: bool = False  # it failed because that file has changed since, and stays as it is

    @property
    def kind(self) -> str:
        """For counts and filters: what was done, or why nothing was."""
        if self.error is not None:
            return "failed"
        if self.reason is not None:
            return self.reason
        # Journals of older versions name no reasons.
        older = {"left": "upright already", "unsure": "unsure"}
        return older.get(self.action or "", self.action or "found")

    @property
    def angle_signed(self) -> float | None:
        return None if self.angle_ccw is None else round(signed(self.angle_ccw), 2)

    @property
    def applied_signed(self) -> float | None:
        return None if self.applied_ccw is None else round(signed(self.applied_ccw), 2)

    def record(self, job: Job) -> dict[str, Any]:
        """The object that `--json` prints."""
        if self.error is not None:
            reason = {"reason": "failed"} if job.turns else {}
            return {"path": self.path, **reason, "error": self.error}
        found = {
            "angle_ccw": self.angle_ccw,
            "angle_signed": self.angle_signed,
            "confidence": self.confidence,
            "symmetry": self.symmetry,
            "quarter": self.quarter,
            "quarter_confidence": self.quarter_confidence,
            "kind": "document" if self.document else "picture",
            "model": job.model,
        }
        if self.action is None:
            return {"path": self.path, **found}
        done = {"action": self.action, "reason": self.reason, **self._measured()}
        lost = {} if self.lost is None else {"lost": self.lost}
        return {"path": self.path, "out": self.out, **found, **done, **lost}

    def _measured(self) -> dict[str, Any]:
        applied = None
        if self.applied_ccw is not None:
            applied = {
                "angle_ccw": self.applied_ccw,
                "from": self.applied_by,
                "method": self.method,
            }
        return {
            "measure": self.measure,
            "value": self.value,
            "threshold": self.threshold,
            "frame_ccw": self.frame_ccw,
            "applied": applied,
        }


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
    quarter, chance = nearest_quarter(answer)
    return Outcome(
        path,
        out,
        rounded(answer),
        _rounded(answer.confidence),
        answer.symmetry,
        quarter=90 * quarter,
        quarter_confidence=_rounded(chance),
        document=answer.kind == "document",
    )


def decided_outcome(outcome: Outcome, undo: Undo, method: Method | None) -> Outcome:
    """The outcome with what was done, or why nothing was."""
    decision = undo.decision
    return replace(
        outcome,
        action=decision.action,
        reason=decision.reason,
        measure=decision.measure,
        value=_rounded(decision.value),
        threshold=decision.threshold,
        applied_ccw=None if decision.turn is None else round(undo.back, 2) % 360,
        applied_by=decision.source,
        frame_ccw=None if undo.frame is None else round(undo.frame.angle, 2) % 360,
        method=method,
    )


def undo_for(
    answer: Answer,
    frame: Frame | None,
    job: Job,
    path: str = "",
    around: Surroundings = FILLED,
) -> Undo:
    return Undo(job.decision(answer, around, path), frame, job.corners, job.fill or around.colour)


def upright(data: bytes, undo: Undo, job: Job) -> tuple[bytes, Method]:
    """The file turned back, and how; quarter turns of a JPEG only change a tag."""
    if undo.quarters is not None and job.format in (None, "jpeg"):
        tagged = images.quarter_turned(data, undo.quarters)
        if tagged is not None:
            return tagged, "exif"
    if job.exif:
        raise images.ImageError("Only a JPEG has the tag that --exif sets. Use --snap 90 instead.")
    picture = images.read(data, first_frame=job.first_frame, limits=job.limits)
    if job.in_place and picture.more and not job.force:
        raise images.ImageError(
            "It holds several pictures, and only the first would be left. Name an output with -o, "
            "or add --force to lose the others."
        )
    if job.in_place and picture.format == "HEIF" and not job.force:
        raise images.ImageError(
            "In place, a HEIC or HEIF file would be encoded anew and could lose depth, HDR or "
            "motion. Name an output with -o, or add --force to lose them."
        )
    made = images.encode(turned(picture, undo), job.format, quality=job.quality)
    return made, "resampled" if undo.back % 90 else "pixels"


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


def made(data: bytes, undo: Undo, job: Job) -> tuple[bytes, Method | None]:
    """The bytes of a file afterwards, and how it was turned."""
    if undo.decision.turn is not None and undo.back:
        return upright(data, undo, job)
    return unchanged(data, job), None


def is_written(action: str | None, job: Job) -> bool:
    """Beside their originals, copies of files that were left alone would be of no use."""
    return action == "turned" or job.copies or job.format is not None


def dial_of(answer: Answer) -> str | None:
    """The posterior in so few directions that a report stays small."""
    if answer.posterior is None:
        return None
    mass = answer.posterior
    step = -(-len(mass) // DIAL)
    if len(mass) % step == 0:
        mass = mass.reshape(-1, step).sum(1)
    levels = (15 * (mass / mass.max()) ** 0.5).round().astype(int)
    return "".join(f"{level:x}" for level in levels)


def thumbnail(data: bytes, job: Job) -> str:
    """A data URI; small pictures are not enlarged."""
    # An output on an enlarged canvas may exceed the limits that its input met.
    most = Limits(*(8 * value for value in astuple(job.limits)))
    small = images.read_small(data, THUMBNAIL, first_frame=job.first_frame, limits=most)
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    stream = BytesIO()
    small.save(stream, "WEBP", quality=70, method=2)
    return "data:image/webp;base64," + b64encode(stream.getvalue()).decode("ascii")


def _rounded(chance: float | None) -> float | None:
    return None if chance is None else round(chance, 4)
