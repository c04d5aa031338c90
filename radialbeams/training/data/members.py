"""Members: the images of a data set, before they are decoded."""

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
    """One image that is known but not yet decoded."""

    path: str  # as the folder or archive spells it
    key: str
    group: str
    make: Callable[[], Image.Image] | None = None  # None: `path` is an image file
    angle_degrees: float | None = None
    held_out: bool | None = None  # None: the key decides
    object_key: str = ""  # of the very thing in it; what decides where the split is by object


Reader = Callable[[Path, Names], list[Member]]


def matches(pattern: str, names: Names) -> list[tuple[re.Match[str], str]]:
    """The files whose whole path fits the pattern, and how their place spells them."""
    found = ((re.fullmatch(pattern, path), name) for path, name in names.items())
    return [(match, name) for match, name in found if match]
