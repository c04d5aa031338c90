"""Deprecated: import from `radialbeams.front.pipeline`."""

from radialbeams.front.pipeline import export_pipeline

__all__ = ["export_pipeline"]
