"""Members: the images of a data set before decoding."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from radialbeams.training.data.archives import Names

IMAGES = r"(?i:png|jpe?g|webp|bmp|tiff?)"


@dataclass(frozen=True)
class Member:
    """One image of a data set, not yet decoded."""

    path: str  # as stored in the folder or archive
    key: str
    group: str
    make: Callable[[], Image.Image] | None = None  # None: `path` is an image file
    angle_degrees: float | None = None
    held_out: bool | None = None  # None: the key decides
    object_key: str = ""  # the object in the image; decides a split by object


Reader = Callable[[Path, Names], list[Member]]


def matches(pattern: str, names: Names) -> list[tuple[re.Match[str], str]]:
    """The match and the stored path of every file whose full path matches the pattern."""
    candidates = ((re.fullmatch(pattern, path), name) for path, name in names.items())
    return [(match, name) for match, name in candidates if match]
