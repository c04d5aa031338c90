"""The result for one file: the estimate, and what was done to the file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypedDict

from radialbeams.batch.job import JobSettings
from radialbeams.decisions import nearest_quarter
from radialbeams.posterior import Answer, rounded, signed
from radialbeams.stored import JsonDict
from radialbeams.undoing import Undo

Action = Literal["turned", "left", "unsure", "exists", "skipped"]
# Why a file was skipped, and the sentence for people.
SKIPPED = {
    "several frames": "It has several frames or pages. Use the first with --first-frame, or save "
    "the one you need as a separate image."
}
# How an image was turned: by the EXIF tag alone, by moving its pixels, by moving them and encoding
# them again with some loss, or by resampling them.
Method = Literal["exif", "pixels", "encoded", "resampled"]


AppliedRecord = TypedDict(
    "AppliedRecord", {"angle_ccw": float, "from": str | None, "method": Method | None}
)


class OutcomeRecord(TypedDict, total=False):
    """The object that `--json` prints for a file. The fields of `Outcome` say what they mean."""

    path: str
    out: str | None
    angle_ccw: float | None
    angle_signed: float | None
    confidence: float | None
    symmetry: int | None
    quarter: int | None
    quarter_confidence: float | None
    kind: str | None  # None: the image was not looked at
    model: str
    action: Action | Literal["failed"]
    reason: str | None
    measure: str | None
    value: float | None
    threshold: float | None
    frame_ccw: float | None
    applied: AppliedRecord | None
    lost: str
    error: str


@dataclass(frozen=True)
class Outcome:
    """The result for one file: an estimate and an action, or an error message."""

    path: str
    out: str | None = None
    angle_ccw: float | None = None  # degrees in [0, 360), two decimals
    confidence: float | None = None
    symmetry: int | None = None
    action: Action | None = None  # None if only angles are estimated
    error: str | None = None
    reason: str | None = None  # why the file was not turned, or why it was skipped
    # The quantity that decided whether the file is turned, its value, and its threshold.
    measure: str | None = None
    value: float | None = None
    threshold: float | None = None
    quarter: int | None = None  # the most probable quarter turn: 0, 90, 180 or 270
    quarter_confidence: float | None = None  # its probability
    applied_ccw: float | None = None  # degrees by which the image was turned
    applied_by: str | None = None  # where that angle comes from: angle, quarter, frame or hand
    method: Method | None = None
    # The angle of the image's rectangle on a plain canvas, known up to a multiple of 90 degrees.
    frame_ccw: float | None = None
    document: bool = False  # the image was treated as a document page
    dial: str | None = None  # the posterior for a report, one hexadecimal digit per direction
    sha256: str | None = None  # of the output
    lost: str | None = None  # what the input contained and the output does not
    before: str | None = None  # thumbnails, as data URIs
    after: str | None = None
    source: str | None = None  # in place: the stamp of the file that was read
    changed: bool = False  # it failed because the file changed after it was read

    def fields(self) -> JsonDict:
        """All fields by name. `dataclasses.asdict` copies each value and takes 30 times as long."""
        return dict(vars(self))

    @property
    def kind(self) -> str:
        """What was done, or why nothing was done; reports count and filter by it."""
        if self.error is not None:
            return "failed"
        if self.reason == "unsure" and self.measure == "exact":
            return "between quarter turns"  # the rule alone decided, not the model's confidence
        if self.reason is not None:
            return self.reason
        # Journals of older versions, and the reports of engines, do not record reasons.
        older = {"left": "upright already", "unsure": "unsure", "skipped": "several frames"}
        return older.get(self.action or "", self.action or "found")

    @property
    def problem(self) -> str | None:
        """Why nothing is known of the file, as a sentence: it failed, or it was skipped."""
        skipped = self.action == "skipped"
        return self.error or (SKIPPED.get(self.kind, "It was skipped.") if skipped else None)

    @property
    def angle_signed(self) -> float | None:
        return None if self.angle_ccw is None else round(signed(self.angle_ccw), 2)

    @property
    def applied_signed(self) -> float | None:
        return None if self.applied_ccw is None else round(signed(self.applied_ccw), 2)

    def record(self, job: JobSettings) -> OutcomeRecord:
        """The object that `--json` prints."""
        record: OutcomeRecord = {"path": self.path}
        if self.error is not None:
            if job.turns:
                record["action"] = record["reason"] = "failed"
            record["error"] = self.error
            return record
        if self.action == "skipped" and not job.turns:
            record.update({"action": self.action, "reason": self.reason})
            record["error"] = str(self.problem)
            return record
        if self.action is not None:
            record["out"] = self.out
        estimate: OutcomeRecord = {
            "angle_ccw": self.angle_ccw,
            "angle_signed": self.angle_signed,
            "confidence": self.confidence,
            "symmetry": self.symmetry,
            "quarter": self.quarter,
            "quarter_confidence": self.quarter_confidence,
            "kind": self._image_kind,
            "model": job.model,
        }
        record.update(estimate)
        if self.action is not None:
            record.update(self._done(self.action))
        return record

    @property
    def _image_kind(self) -> str | None:
        if self.angle_ccw is None:
            return None
        return "document" if self.document else "picture"

    def _done(self, action: Action) -> OutcomeRecord:
        """What was done to the file, and what decided it."""
        applied: AppliedRecord | None = None
        if self.applied_ccw is not None:
            applied = {
                "angle_ccw": self.applied_ccw,
                "from": self.applied_by,
                "method": self.method,
            }
        done: OutcomeRecord = {
            "action": action,
            "reason": self.reason,
            "measure": self.measure,
            "value": self.value,
            "threshold": self.threshold,
            "frame_ccw": self.frame_ccw,
            "applied": applied,
        }
        if self.lost is not None:
            done["lost"] = self.lost
        return done


def outcome_of(path: str, out: str | None, answer: Answer) -> Outcome:
    """The outcome of the estimate, before it is decided whether the file is turned."""
    quarter, probability = nearest_quarter(answer)
    return Outcome(
        path,
        out,
        rounded(answer),
        _rounded(answer.confidence),
        answer.symmetry,
        quarter=90 * quarter,
        quarter_confidence=_rounded(probability),
        document=answer.kind == "document",
    )


def decided_outcome(outcome: Outcome, undo: Undo, method: Method | None) -> Outcome:
    """Adds to an outcome what was done to the file, or why nothing was done."""
    decision = undo.decision
    return replace(
        outcome,
        action=decision.action,
        reason=decision.reason,
        measure=decision.measure,
        # To more digits: it must stay on its side of the threshold.
        value=None if decision.value is None else round(decision.value, 6),
        threshold=decision.threshold,
        applied_ccw=None if decision.turn is None else round(undo.back, 2) % 360,
        applied_by=decision.source,
        frame_ccw=None if undo.frame is None else round(undo.frame.angle, 2) % 360,
        method=method,
    )


def _rounded(probability: float | None) -> float | None:
    return None if probability is None else round(probability, 4)
