"""The result of a scan for one file: an image to train on, or the reason to skip it."""

from __future__ import annotations

from dataclasses import dataclass

from radialbeams.training.own.shards import Stored


@dataclass(frozen=True)
class ScannedImage:
    """One image that can be trained on."""

    path: str  # relative to the folder; inside a shard: SHARD/NAME
    group: str  # "" where there is none
    size: tuple[int, int]  # width, height, as displayed
    sha256: str  # of its file
    fingerprint: str  # hexadecimal: 128 bits, then a thumbnail of 256 grey levels
    stored: Stored
    tilted: bool = False  # its plain corners show that it was turned on its own canvas
    # By how many degrees it is rotated, counter-clockwise; it is straightened when it is read.
    angle: float = 0.0


@dataclass(frozen=True)
class UnusedFile:
    path: str
    reason: str  # in words
