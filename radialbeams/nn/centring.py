"""Deprecated: import from `radialbeams.front.centring`."""

from radialbeams.front.centring import centred_boxes

__all__ = ["centred_boxes"]
