"""Pictures: read as they are meant to be seen, shown to a model, turned, and written back.

Convention: angles here are degrees, counter-clockwise as displayed, like everywhere at the edges.
"""

from radialbeams.images.orientation import set_orientation
from radialbeams.images.picture import MAX_PIXELS, ImageError, Picture, Source
from radialbeams.images.reading import content_of, read, read_small
from radialbeams.images.turning import Corners, turn
from radialbeams.images.views import looks, view
from radialbeams.images.writing import encode

__all__ = [
    "MAX_PIXELS",
    "Corners",
    "ImageError",
    "Picture",
    "Source",
    "content_of",
    "encode",
    "looks",
    "read",
    "read_small",
    "set_orientation",
    "turn",
    "view",
]
