"""Carries out a decision on a picture, and returns it as the type of the input."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np

from radialbeams import images
from radialbeams.decisions import Decision
from radialbeams.images import Corners, Frame, Picture
from radialbeams.limits import DEFAULT, Limits


@dataclass(frozen=True)
class Undo:
    """How a rotation is undone: the decision, and the settings of the new canvas."""

    decision: Decision
    frame: Frame | None = None
    corners: Corners = "restore"
    fill: str | None = None

    @property
    def back(self) -> float:
        """The rotation that undoes the turn, counter-clockwise; 0 if the picture is left alone."""
        return -(self.decision.turn or 0.0) % 360

    @property
    def quarters(self) -> int | None:
        """The same in quarter turns, if the decision is an exact quarter turn; else None."""
        return round(self.back / 90) % 4 if self.decision.source == "quarter" else None

    @property
    def moves_pixels(self) -> bool:
        """Whether pixels keep their values, so that palettes and one-bit images can stay."""
        return self.back % 90 == 0 and self.fill != "transparent"


def undone(source: Any, undo: Undo, *, first_frame: bool = False, limits: Limits = DEFAULT) -> Any:
    """The upright picture: arrays for arrays, bytes for bytes, BytesIO for files, else an image."""
    if isinstance(source, np.ndarray):
        return images.turn(
            source, undo.back, corners=undo.corners, fill=undo.fill, frame=undo.frame
        )
    content = source.getvalue() if isinstance(source, BytesIO) else source
    if not isinstance(content, bytes):
        return _picture(content, undo, first_frame, limits).image
    data = _file(content, undo, first_frame, limits)
    return data if isinstance(source, bytes) else BytesIO(data)


def turned(picture: Picture, undo: Undo) -> Picture:
    return images.turn(picture, undo.back, corners=undo.corners, fill=undo.fill, frame=undo.frame)


def _file(data: bytes, undo: Undo, first_frame: bool, limits: Limits) -> bytes:
    """The bytes of the upright file, lossless if possible; unchanged if it is left alone."""
    if undo.decision.turn is None:
        return data
    if undo.quarters is not None:
        lossless = images.quarter_turned(data, undo.quarters)
        if lossless is not None:
            return lossless
    as_stored = undo.moves_pixels
    return images.encode(_picture(data, undo, first_frame, limits, as_stored=as_stored))


def _picture(
    source: Any, undo: Undo, first_frame: bool, limits: Limits, *, as_stored: bool = False
) -> Picture:
    picture = images.read(source, first_frame=first_frame, limits=limits, as_stored=as_stored)
    return picture if undo.decision.turn is None else turned(picture, undo)
