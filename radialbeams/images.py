"""Pictures in, views for a model, the picture turned back.

Convention: angles here are degrees, counter-clockwise as displayed, like everywhere at the edges.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

Source = str | Path | Image.Image

_QUARTERS = {
    90: Image.Transpose.ROTATE_90,
    180: Image.Transpose.ROTATE_180,
    270: Image.Transpose.ROTATE_270,
}


def open_rgb(source: Source) -> Image.Image:
    """A picture as it is meant to be seen: EXIF orientation applied, alpha laid on black."""
    picture = source if isinstance(source, Image.Image) else Image.open(source)
    picture = ImageOps.exif_transpose(picture)
    if picture.mode in ("LA", "PA", "RGBA") or "transparency" in picture.info:
        clear = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", clear.size, "black"), clear).convert("RGB")
    return picture.convert("RGB")


def centre_square(picture: Image.Image) -> Image.Image:
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    return picture.crop((left, top, left + side, top + side))


def paper_view(picture: Image.Image, view_size: int) -> NDArray[np.float32]:
    """(3, S, S) in [0, 1]: the centred square, taken for the paper's padded and rotated X_θ."""
    view = centre_square(picture).resize((view_size, view_size), Image.Resampling.LANCZOS)
    return np.asarray(view, dtype=np.float32).transpose(2, 0, 1) / np.float32(255)


def turn(picture: Image.Image, degrees: float) -> Image.Image:
    """The picture turned counter-clockwise on its own canvas, once; quarter turns move pixels."""
    quarter = _QUARTERS.get(round(degrees) % 360) if degrees == round(degrees) else None
    if quarter is not None and (quarter == _QUARTERS[180] or picture.width == picture.height):
        return picture.transpose(quarter)
    return picture.rotate(degrees, Image.Resampling.BICUBIC)
