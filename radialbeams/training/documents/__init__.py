"""Synthetic documents and screens with a known up, drawn by Pillow from fonts and texts."""

from radialbeams.training.documents.material import Material
from radialbeams.training.documents.render import Page, render

__all__ = ["Material", "Page", "render"]
