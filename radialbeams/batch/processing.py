"""Turns the bytes of an input file into the bytes of its output file."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

from radialbeams import images
from radialbeams.batch.job import JobSettings
from radialbeams.batch.outcome import Method
from radialbeams.decisions import FILLED, Surroundings
from radialbeams.images import Frame
from radialbeams.posterior import Answer
from radialbeams.undoing import Undo, turned


def undo_for(
    answer: Answer,
    frame: Frame | None,
    job: JobSettings,
    path: str = "",
    around: Surroundings = FILLED,
) -> Undo:
    """The rotation to undo, as decided from the estimate or set by hand."""
    return Undo(job.decision(answer, around, path), frame, job.corners, job.fill or around.colour)


def unless_raw(undo: Undo, data: bytes, job: JobSettings) -> Undo:
    """Leaves a camera's raw file as it is, unless its preview is to be written in another format.

    The decision keeps the number that it was made by.
    """
    decision = undo.decision
    if decision.turn is None or job.format is not None or not images.is_raw(BytesIO(data)):
        return undo
    return replace(undo, decision=replace(decision, turn=None, source=None, reason="camera raw"))


def upright_file(data: bytes, undo: Undo, job: JobSettings) -> tuple[bytes, Method]:
    """The bytes of the upright file, and the method.

    A quarter turn of a JPEG only sets a tag, unless the job asks for turned pixels.
    """
    if undo.quarters is not None and job.format in (None, "jpeg") and not job.pixels:
        tagged = images.quarter_turned(data, undo.quarters)
        if tagged is not None:
            return tagged, "exif"
    if job.exif:
        raise images.ImageError("Only a JPEG has the tag that --exif sets. Use --snap 90 instead.")
    picture = images.read(
        data, first_frame=job.first_frame, limits=job.limits, as_stored=undo.moves_pixels
    )
    if job.in_place and picture.more and not job.force:
        raise images.ImageError(
            "It holds several images, and only the first would remain. Choose an output with -o, "
            "or add --force to lose the others."
        )
    if job.in_place and picture.format == "HEIF" and not job.force:
        raise images.ImageError(
            "In place, a HEIC or HEIF file would be re-encoded and could lose depth, HDR or "
            "motion data. Choose an output with -o, or add --force to lose them."
        )
    encoded = images.encode(turned(picture, undo), job.format, quality=job.quality)
    if undo.back % 90:
        return encoded, "resampled"
    return encoded, "encoded" if images.is_lossy(picture, job.format) else "pixels"


def lost_metadata(before: bytes, after: bytes, job: JobSettings) -> str | None:
    """Names what the turned file no longer contains; in place, raises ImageError instead."""
    names = ", ".join(images.missing(before, after))
    if names and job.in_place and not job.force:
        raise images.ImageError(
            f"In place, it would lose {names}. Choose an output with -o, or add --force to lose it."
        )
    return names or None


def unturned_file(data: bytes, job: JobSettings) -> bytes:
    """The same bytes, or the unturned image re-encoded if the job asks for another format."""
    if job.format is None:
        return data
    picture = images.read(data, first_frame=job.first_frame, limits=job.limits)
    if picture.format == job.format.upper():
        return data
    # The fill is the background in formats without alpha.
    picture = replace(picture, background=job.fill)
    return images.encode(picture, job.format, quality=job.quality)


def output_of(data: bytes, undo: Undo, job: JobSettings) -> tuple[bytes, Method | None]:
    """The bytes of the output, and the method by which the image was turned (None: it was not)."""
    if undo.decision.turn is not None and undo.back:
        return upright_file(data, undo, job)
    return unturned_file(data, job), None


def is_written(action: str | None, job: JobSettings) -> bool:
    """Whether an output is written. Unturned files are not copied next to their originals."""
    return action == "turned" or job.copies or job.format is not None
