"""Small pictures as text, so that a figure can be drawn from its JSON alone."""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def encode(pixels: NDArray[np.uint8]) -> str:
    """(H, W) or (H, W, 3) bytes as a PNG in base64."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def decode(text: str) -> NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(text))))
