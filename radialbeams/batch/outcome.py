"""The result for one file: the estimate, and what was done to the file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from radialbeams.batch.job import JobSettings
from radialbeams.decisions import nearest_quarter
from radialbeams.posterior import Answer, rounded, signed
from radialbeams.undoing import Undo

Action = Literal["turned", "left", "unsure", "exists"]
# How an image was turned: by the EXIF tag alone, by moving its pixels, or by resampling them.
Method = Literal["exif", "pixels", "resampled"]


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
    reason: str | None = None  # why the file was not turned
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

    def fields(self) -> dict[str, Any]:
        """All fields by name. `dataclasses.asdict` copies each value and takes 30 times as long."""
        return dict(vars(self))

    @property
    def kind(self) -> str:
        """What was done, or why nothing was done; reports count and filter by it."""
        if self.error is not None:
            return "failed"
        if self.reason is not None:
            return self.reason
        # Journals of older versions do not record reasons.
        older = {"left": "upright already", "unsure": "unsure"}
        return older.get(self.action or "", self.action or "found")

    @property
    def angle_signed(self) -> float | None:
        return None if self.angle_ccw is None else round(signed(self.angle_ccw), 2)

    @property
    def applied_signed(self) -> float | None:
        return None if self.applied_ccw is None else round(signed(self.applied_ccw), 2)

    def record(self, job: JobSettings) -> dict[str, Any]:
        """The object that `--json` prints."""
        if self.error is not None:
            reason = {"reason": "failed"} if job.turns else {}
            return {"path": self.path, **reason, "error": self.error}
        fields = {
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
            return {"path": self.path, **fields}
        done = {"action": self.action, "reason": self.reason, **self._measured()}
        lost = {} if self.lost is None else {"lost": self.lost}
        return {"path": self.path, "out": self.out, **fields, **done, **lost}

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
        value=_rounded(decision.value),
        threshold=decision.threshold,
        applied_ccw=None if decision.turn is None else round(undo.back, 2) % 360,
        applied_by=decision.source,
        frame_ccw=None if undo.frame is None else round(undo.frame.angle, 2) % 360,
        method=method,
    )


def _rounded(probability: float | None) -> float | None:
    return None if probability is None else round(probability, 4)
