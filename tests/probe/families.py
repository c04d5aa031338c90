"""All families, in the order in which they run."""

from __future__ import annotations

from . import edits, files, journals, kills, links, overlaps

ALL = (files.FAMILY, kills.FAMILY, edits.FAMILY, overlaps.FAMILY, links.FAMILY, journals.FAMILY)
