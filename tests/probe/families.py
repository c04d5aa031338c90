"""All families, in the order in which they run."""

from __future__ import annotations

from . import (
    edits,
    files,
    giants,
    journals,
    kills,
    limits,
    links,
    metadata,
    models,
    names,
    overlaps,
    scale,
    signals,
    training,
    uploads,
)

ALL = (
    files.FAMILY,
    giants.FAMILY,
    names.FAMILY,
    metadata.FAMILY,
    kills.FAMILY,
    signals.FAMILY,
    edits.FAMILY,
    overlaps.FAMILY,
    links.FAMILY,
    journals.FAMILY,
    limits.FAMILY,
    models.FAMILY,
    training.FAMILY,
    scale.FAMILY,
    uploads.FAMILY,
)
