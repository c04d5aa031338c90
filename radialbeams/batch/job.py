"""The settings of a run: the model, the outputs, and the thresholds for turning an image."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from radialbeams import decisions
from radialbeams.cards import Card
from radialbeams.decisions import Decision, Surroundings, decide
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
from radialbeams.limits import DEFAULT, Limits
from radialbeams.posterior import Answer, Thresholds
from radialbeams.stored import JsonDict

_LEAST = Thresholds()

# The settings in the first line of a journal. A command resumes a run only if its own are equal.
RecordedSettings = JsonDict


@dataclass(frozen=True)
class JobSettings:
    """The settings of a run. All of them except the limits affect the outputs."""

    model: str
    refine: int = LOOKS
    first_frame: bool = False
    turns: bool = False  # False: only estimate angles
    writes: bool = False  # False: a dry run
    in_place: bool = False
    backup: bool = False  # in place: keep the original as NAME.orig
    force: bool = False  # in place: replace a file even if that loses something
    overwrite: bool = False
    copies: bool = True  # copy files that are not turned to their outputs
    snap: Snap = SNAP
    exif: bool = False  # turn only by setting the orientation tag of a JPEG
    pixels: bool = False  # turn the pixels of a JPEG, not only its tag
    corners: Corners = CORNERS
    fill: str | None = FILL
    min_confidence: float = _LEAST.confidence
    min_angle: float = _LEAST.angle
    max_upright: float = _LEAST.upright
    min_quarter: float = _LEAST.quarter
    min_exact: float = _LEAST.exact
    tilts: bool = _LEAST.tilts
    # Documents have these two thresholds instead of all of the above.
    document_confidence: float = _LEAST.confidence
    document_angle: float = _LEAST.angle
    quality: int | None = None
    format: str | None = None
    thumbnails: int = 0  # how many images get thumbnails, before and after
    # Pairs of a path and the angle that a person set for it; None: leave the file alone.
    corrections: tuple[tuple[str, float | None], ...] = ()
    limits: Limits = DEFAULT  # the only setting that may change when a run is resumed

    @classmethod
    def from_fields(cls, fields: JsonDict) -> JobSettings:
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
    job: JobSettings, card: Card, confidence: float | None = None, angle: float | None = None
) -> JobSettings:
    """Returns the settings with the thresholds of the model's card.

    A `confidence` replaces all probability thresholds of the card, an `angle` its least angle.
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


# Settings that older versions did not have. Their values follow from the command and the model.
DERIVED = (
    *("copies", "min_quarter", "min_exact", "tilts"),
    *("document_confidence", "document_angle"),
)


def settings_of_older(
    noted: RecordedSettings, job: JobSettings, defaults: RecordedSettings
) -> RecordedSettings:
    """Converts the settings in the journal of an older version to those of this version.

    Settings that the older version did not have get their default, or the value that follows from
    the command and the model. The older defaults were `expand` for the canvas and no snapping.
    """
    if "copies" in noted:
        return {"pixels": False, **noted}
    derived = {name: getattr(job, name) for name in DERIVED}
    updated = {**defaults, **derived, **noted}
    if updated["snap"] is False:
        updated["snap"] = "auto" if job.snap == "auto" else "none"
    elif updated["snap"] is True:
        updated["snap"] = "90"
    if updated["corners"] == "expand" and job.corners == "restore":
        updated["corners"] = job.corners
    return updated
