"""Synthetic documents and screens of known orientation, drawn by Pillow from fonts and texts."""

from radialbeams.training.data.documents.material import Material
from radialbeams.training.data.documents.render import RenderedPage, render

__all__ = ["Material", "RenderedPage", "render"]
