"""Reads images as they are displayed, makes views for the model, turns images and writes them.

Convention: angles are degrees, counter-clockwise as displayed.
"""

from radialbeams.defaults import Corners
from radialbeams.images.budget import out_of_memory
from radialbeams.images.frames import Frame, frame_of, ground_colour, has_plain_ground
from radialbeams.images.inventory import missing
from radialbeams.images.orientation import quarter_turned, set_orientation
from radialbeams.images.picture import ImageError, ImageSource, Picture, SeveralFrames
from radialbeams.images.plugins import EXTRA, missing_suffixes, suffixes
from radialbeams.images.raw_previews import SUFFIXES as RAW_SUFFIXES
from radialbeams.images.raw_previews import is_raw
from radialbeams.images.reading import content_of, read, read_small
from radialbeams.images.turning import turn
from radialbeams.images.views import ends, looks, view, views_of
from radialbeams.images.writing import encode, is_lossy

__all__ = [
    "EXTRA",
    "RAW_SUFFIXES",
    "Corners",
    "Frame",
    "ImageError",
    "ImageSource",
    "Picture",
    "SeveralFrames",
    "content_of",
    "encode",
    "ends",
    "frame_of",
    "ground_colour",
    "has_plain_ground",
    "is_lossy",
    "is_raw",
    "looks",
    "missing",
    "missing_suffixes",
    "out_of_memory",
    "quarter_turned",
    "read",
    "read_small",
    "set_orientation",
    "suffixes",
    "turn",
    "view",
    "views_of",
]
