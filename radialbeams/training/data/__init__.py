"""Data sets: where they are found, and how they are decoded, cached and split."""

from radialbeams.training.data.sets import (
    FOLDER_SIZE,
    SPLITS,
    SPLITS_BY,
    DataNotFound,
    ImageSet,
    in_test,
    load,
    place_of,
)
from radialbeams.training.data.sources import SOURCES, DataSource

Source = DataSource  # its name in earlier versions

__all__ = [
    "FOLDER_SIZE",
    "SOURCES",
    "SPLITS",
    "SPLITS_BY",
    "DataNotFound",
    "DataSource",
    "ImageSet",
    "Source",
    "in_test",
    "load",
    "place_of",
]
