"""Limits on the size of one image, shared by the library, the command and the training."""

from __future__ import annotations

from dataclasses import dataclass

MIB, GIB = 2**20, 2**30


@dataclass(frozen=True)
class Limits:
    """Limits that are checked before an image is decoded, by its header and file size."""

    pixels: int = 200_000_000
    memory: int = 4 * GIB  # bytes for reading, turning and writing one image
    file_size: int = 512 * MIB  # bytes of a file, or of one member of an archive

    def __post_init__(self) -> None:
        for name in ("pixels", "memory", "file_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1; got {getattr(self, name)}.")


DEFAULT = Limits()
