"""Colour with sixteen bits per channel, in numpy arrays, since Pillow has no mode for it.

Pillow decodes such files, but keeps only the upper of every two bytes. With the byte order swapped
it keeps the lower one, so decoding twice gives all sixteen bits.
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Sequence
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile

from radialbeams.images import png

SixteenBit = NDArray[np.uint16]  # (H, W, C) with 2, 3 or 4 channels

_SWAPPED = {"B": "L", "L": "B", "N": "B" if sys.byteorder == "little" else "L"}
_WIDTH, _BITS, _PHOTOMETRIC, _SAMPLES, _EXTRA = 256, 258, 262, 277, 338  # TIFF's tags
_SUBTRACT_LEFT = 1  # PNG's filter that stores the difference to the left pixel


def raw_mode(image: Image.Image) -> str:
    """Pillow's raw mode of the file, such as "RGB;16B"; "" once the pixels are decoded."""
    tiles = getattr(image, "tile", None) or []
    if not tiles:
        return ""
    options = tiles[0].args
    if image.format == "PPM" and image.mode == "RGB":
        # The last of several options is the largest value; eight-bit files have a single option.
        several = isinstance(options, tuple) and options[-1] != "RGB"
        return "RGB;16" if several and int(options[-1]) > 255 else "RGB"
    return str(options[0] if isinstance(options, tuple) else options)


def readings(image: Image.Image, raw: str) -> list[Image.Image]:
    """Images that together hold all bytes of a file that is open but not yet decoded.

    One image with the upper bytes and one with the lower bytes; for gray with alpha, a single
    image with both. Empty if Pillow mixes the channels while decoding.
    """
    channels, _, order = raw.partition(";16")
    if channels == "LA" and order == "B":
        return [_read_again(image, "RGBA")]  # the same four bytes per pixel, as separate channels
    if channels not in ("RGB", "RGBA", "RGBX") or order not in _SWAPPED:
        return []
    return [_read_again(image, mode) for mode in (raw, f"{channels};16{_SWAPPED[order]}")]


def joined(images: Sequence[Image.Image]) -> SixteenBit:
    """The images of `readings` as one array."""
    pixels = [np.asarray(image).astype(np.uint16) for image in images]
    if len(pixels) == 1:
        pixels = [pixels[0][:, :, 0::2], pixels[0][:, :, 1::2]]
    return pixels[0] * np.uint16(256) + pixels[1]


def with_key_clear(pixels: SixteenBit, key: object) -> SixteenBit:
    """Adds an alpha channel for a PNG that declares one colour (`key`) as transparent."""
    clear = (pixels == np.array(key, np.uint16)).all(2, keepdims=True)
    return np.concatenate((pixels, np.where(clear, 0, 65535).astype(np.uint16)), axis=2)


def _read_again(image: Image.Image, raw: str) -> Image.Image:
    stream = image.fp  # type: ignore[attr-defined]
    position = stream.tell()
    stream.seek(0)
    again = Image.open(BytesIO(stream.read()), formats=(str(image.format),))
    stream.seek(position)
    if isinstance(again, ImageFile.ImageFile):
        again.tile = [tile._replace(args=_with_raw(tile.args, raw)) for tile in again.tile]
    again.load()
    return again


def _with_raw(options: object, raw: str) -> tuple[object, ...] | str:
    return (raw, *options[1:]) if isinstance(options, tuple) else raw


# --- writing -----------------------------------------------------------------------------------


def sixteen_bit_png(pixels: SixteenBit, shell: bytes) -> bytes:
    """A PNG of these pixels with the metadata of `shell`, an 8-bit PNG of the same size."""
    chunks, has_pixels = [shell[:8]], False
    for kind, body in png.chunks(shell):
        if kind == b"IHDR":
            body = body[:8] + b"\x10" + body[9:]
        elif kind == b"IDAT":
            if has_pixels:
                continue
            body, has_pixels = zlib.compress(_filtered(pixels)), True
        chunks.append(png.chunk(kind, body))
    return b"".join(chunks)


def as_gray(pixels: SixteenBit) -> Image.Image:
    """The channels interleaved in one wide gray image, which Pillow can write."""
    return Image.fromarray(pixels.reshape(len(pixels), -1))


def sixteen_bit_tiff(pixels: SixteenBit, shell: bytes) -> bytes:
    """A TIFF of these pixels, made from the TIFF of `as_gray`: the same data with other tags.

    The new directory is longer than the old one, so it is appended at the end.
    """
    width, channels = pixels.shape[1:]
    (at,) = struct.unpack_from("<I", shell, 4)
    (count,) = struct.unpack_from("<H", shell, at)
    offsets = range(at + 2, at + 2 + 12 * count, 12)
    entries = {
        struct.unpack_from("<H", shell, offset)[0]: shell[offset : offset + 12]
        for offset in offsets
    }
    shell += bytes(len(shell) % 2)
    bits = struct.pack(f"<{channels}H", *[16] * channels)
    # Values of up to four bytes are stored in the entry itself.
    value = bits if len(bits) <= 4 else struct.pack("<I", len(shell))
    entries[_WIDTH] = struct.pack("<HHII", _WIDTH, 4, 1, width)
    entries[_BITS] = struct.pack("<HHI", _BITS, 3, channels) + value
    entries[_PHOTOMETRIC] = struct.pack("<HHII", _PHOTOMETRIC, 3, 1, 1 if channels == 2 else 2)
    entries[_SAMPLES] = struct.pack("<HHII", _SAMPLES, 3, 1, channels)
    if channels in (2, 4):
        entries[_EXTRA] = struct.pack("<HHII", _EXTRA, 3, 1, 2)  # unassociated alpha
    directory = struct.pack("<H", len(entries)) + b"".join(entries[tag] for tag in sorted(entries))
    start = struct.pack("<I", len(shell) + len(bits))
    return shell[:4] + start + shell[8:] + bits + directory + bytes(4)


def _filtered(pixels: SixteenBit) -> bytes:
    height, width, channels = pixels.shape
    step = 2 * channels
    rows = np.ascontiguousarray(pixels.astype(">u2")).view(np.uint8).reshape(height, width * step)
    out = np.empty((height, width * step + 1), np.uint8)
    out[:, 0] = _SUBTRACT_LEFT
    out[:, 1 : step + 1] = rows[:, :step]
    out[:, step + 1 :] = rows[:, step:] - rows[:, :-step]  # modulo 256, as PNG requires
    return out.tobytes()
