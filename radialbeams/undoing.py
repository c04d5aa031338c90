"""A turn undone: what a decision makes of a picture, as the type that it came in."""

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
    """What is done to a picture, and to the canvas around it."""

    decision: Decision
    frame: Frame | None = None
    corners: Corners = "restore"
    fill: str | None = None

    @property
    def back(self) -> float:
        """Degrees counter-clockwise that undo the turn; 0 where the picture is left alone."""
        return -(self.decision.turn or 0.0) % 360

    @property
    def quarters(self) -> int | None:
        """The same in quarter turns, where the picture is to be turned by exactly that."""
        return round(self.back / 90) % 4 if self.decision.source == "quarter" else None


def undone(source: Any, undo: Undo, *, first_frame: bool = False, limits: Limits = DEFAULT) -> Any:
    """Arrays as arrays, bytes as bytes of the same format, files as BytesIO, the rest as images."""
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
    """Without loss where that is possible; what is left alone keeps its bytes."""
    if undo.decision.turn is None:
        return data
    if undo.quarters is not None:
        lossless = images.quarter_turned(data, undo.quarters)
        if lossless is not None:
            return lossless
    return images.encode(_picture(data, undo, first_frame, limits))


def _picture(source: Any, undo: Undo, first_frame: bool, limits: Limits) -> Picture:
    picture = images.read(source, first_frame=first_frame, limits=limits)
    return picture if undo.decision.turn is None else turned(picture, undo)
