"""radialbeams turns rotated images upright."""

from radialbeams.canonicalizer import Canonicalization, Canonicalizer

__all__ = ["Canonicalization", "Canonicalizer", "__version__"]
__version__ = "0.1.0"
