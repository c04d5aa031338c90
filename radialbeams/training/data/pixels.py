"""From one encoded file to a square of bytes: EXIF orientation, modes, transparency, resampling."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps


def open_image(data: bytes, size: int) -> Image.Image:
    """The image in its EXIF orientation; a JPEG much larger than `size` is decoded smaller."""
    image = Image.open(io.BytesIO(data))
    image.draft(
        None, (2 * size, 2 * size)
    )  # at least twice `size`, so that the resampling sets the quality
    ImageOps.exif_transpose(image, in_place=True)
    return image


def centred_square(image: Image.Image) -> Image.Image:
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.crop((left, top, left + side, top + side))


def square_bytes(image: Image.Image, size: int, channels: int) -> NDArray[np.uint8]:
    """(channels, size, size); resampled only if the centred square has a different side."""
    image = opaque(centred_square(image))
    if image.width != size:
        image = image.resize((size, size), Image.Resampling.LANCZOS, reducing_gap=3.0)
    if channels == 1:
        return np.asarray(image.convert("L"))[None]
    return np.asarray(image).transpose(2, 0, 1)


def opaque(image: Image.Image) -> Image.Image:
    """RGB with eight bits per channel, composed on black where it is transparent."""
    if image.mode == "F":
        raise ValueError("pixels are floats of unknown range; save the image with 8 or 16 bits")
    if image.mode.startswith("I"):  # 16 bits; Pillow's conversion would clip them to 8
        values = np.asarray(image).clip(0, 65535).astype(np.uint32)
        image = Image.fromarray(((values + 128) // 257).astype(np.uint8))
    if image.has_transparency_data:
        # Black is COIL-100's background, and the colour of a view outside its disc.
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, (0, 0, 0, 255)), image)
    return image.convert("RGB")
