"""Deprecated: import from `radialbeams.front.accuracy`."""

from radialbeams.front.accuracy import Task, finder, tally

__all__ = ["Task", "finder", "tally"]
