"""Deprecated: import from `radialbeams.front.module`."""

from radialbeams.front.module import Canonicalizer

__all__ = ["Canonicalizer"]
