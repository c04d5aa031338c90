"""Deprecated: import from `radialbeams.front.hub`."""

from radialbeams.front.hub import HubCanonicalizer

__all__ = ["HubCanonicalizer"]
