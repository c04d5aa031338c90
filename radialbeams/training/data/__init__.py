"""Image sets: where they come from, how they are read and decoded, and how they are split."""

from radialbeams.training.data.sets import (
    FOLDER_SIZE,
    SOURCES,
    SPLITS,
    SPLITS_BY,
    DataNotFound,
    ImageSet,
    Source,
    in_test,
    load,
    place_of,
)

__all__ = [
    "FOLDER_SIZE",
    "SOURCES",
    "SPLITS",
    "SPLITS_BY",
    "DataNotFound",
    "ImageSet",
    "Source",
    "in_test",
    "load",
    "place_of",
]
