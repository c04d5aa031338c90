"""radialbeams turns rotated images upright."""

from radialbeams import telemetry
from radialbeams.canonicalizer import Canonicalization, Canonicalizer, canonicalize

__all__ = ["Canonicalization", "Canonicalizer", "__version__", "canonicalize"]
__version__ = "0.1.0"

telemetry.switch_off()
