"""A data set as someone would add it: a reader in a file of its own, and `ROW` for the table."""

from __future__ import annotations

from pathlib import Path

from radialbeams.training.data.archives import Names
from radialbeams.training.data.members import Member, matches
from radialbeams.training.data.sources import DataSource


def read(place: Path, names: Names) -> list[Member]:
    found = matches(r"(half[0-9]+)\.png", names)
    return [Member(path, match[1], "half") for match, path in found]


ROW = DataSource(
    official="https://example.org/halves",
    licence="CC0",
    layout="halves/half0.png, half1.png, …",
    size=28,
    places=("halves",),
    read=read,
)
