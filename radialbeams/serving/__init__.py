"""The HTTP service: images in, angles and upright images out, with a page to try it on.

One process speaks HTTP; worker processes with limits decode the files and run the models.
"""

from radialbeams.serving.page import write_page
from radialbeams.serving.server import MissingExtra, serve
from radialbeams.serving.settings import Settings

__all__ = ["MissingExtra", "Settings", "serve", "write_page"]
