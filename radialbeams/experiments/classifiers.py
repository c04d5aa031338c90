"""Deprecated: import from `radialbeams.front.classifiers`."""

from radialbeams.front.classifiers import efficientnet_lite0

__all__ = ["efficientnet_lite0"]
