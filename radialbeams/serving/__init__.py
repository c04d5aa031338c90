"""The HTTP service: it takes images and returns angles and upright images; with a demo page.

One process handles HTTP; worker processes with resource limits decode the files and run the models.
"""

from radialbeams.serving.page import write_page
from radialbeams.serving.server import MissingExtra, serve
from radialbeams.serving.settings import ServiceSettings

__all__ = ["MissingExtra", "ServiceSettings", "serve", "write_page"]
