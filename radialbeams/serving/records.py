"""The record of a file, as it goes from a worker to the client in JSON."""

from __future__ import annotations

from typing import TypedDict

Applied = TypedDict("Applied", {"angle_ccw": float, "from": str | None})


class ErrorRecord(TypedDict):
    code: str
    message: str


class FileRecord(TypedDict, total=False):
    """The estimate for a file and what `upright` does with it, or `error` alone."""

    angle_ccw: float
    angle_signed: float
    confidence: float | None
    symmetry: int | None
    quarter: int | None
    quarter_confidence: float | None
    upright: float | None
    kind: str
    model: str | None
    action: str
    reason: str | None
    measure: str
    value: float | None
    threshold: float
    applied: Applied | None
    posterior: list[float] | None
    beams: list[float]
    error: ErrorRecord


class NamedRecord(FileRecord, total=False):
    """A record among several, with the name of its file and where the image is."""

    name: str | None
    type: str  # media type of the image
    image: str  # in base64
    file: str  # its name in the archive


Result = tuple[FileRecord, bytes]  # a record, and the bytes of the image that belongs to it
