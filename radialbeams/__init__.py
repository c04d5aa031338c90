"""radialbeams turns rotated images upright."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from radialbeams import telemetry

if TYPE_CHECKING:
    from radialbeams.canonicalizer import Canonicalization, Canonicalizer, canonicalize

__all__ = ["Canonicalization", "Canonicalizer", "__version__", "canonicalize"]
__version__ = "0.1.0"

telemetry.switch_off()


def __getattr__(name: str) -> Any:
    """Imports public names when they are first used, so that the command starts quickly."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from radialbeams import canonicalizer

    return getattr(canonicalizer, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
