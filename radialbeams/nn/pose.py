"""Deprecated: import from `radialbeams.front.pose`."""

from radialbeams.front.pose import Pose

__all__ = ["Pose"]
