"""Image files of every format, damaged as disks, networks and attackers damage them."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, PngImagePlugin, features

SIZE = (37, 23)
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf tiff:Orientation="6"/></x:xmpmeta>'
ENDINGS = {
    "PNG": "png",
    "JPEG": "jpg",
    "WebP": "webp",
    "TIFF": "tif",
    "GIF": "gif",
    "BMP": "bmp",
    "AVIF": "avif",
    "JPEG2000": "jp2",
    "PPM": "ppm",
}
Random = np.random.Generator


# --- files to damage ---------------------------------------------------------------------------


@cache
def originals() -> list[tuple[str, bytes]]:
    rng = np.random.default_rng(0)
    rgba = Image.fromarray(rng.integers(0, 256, (*SIZE[::-1], 4), np.uint8))
    rgb, gray = rgba.convert("RGB"), rgba.convert("L")
    sixteen = Image.fromarray(rng.integers(0, 65536, SIZE[::-1], np.uint16))
    colour = rng.integers(0, 65536, (*SIZE[::-1], 3), np.uint16)
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "camera"
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Title", "a picture", zip=True)
    texts.add_itxt("XML:com.adobe.xmp", XMP.decode())
    several = {"save_all": True, "append_images": [rgb.rotate(90), rgb.rotate(180)]}
    return [
        ("PNG", saved(rgb, "PNG", exif=exif, dpi=(72, 72))),
        ("PNG", saved(rgba, "PNG")),
        ("PNG", saved(rgb.quantize(16), "PNG", transparency=3)),
        ("PNG", saved(sixteen, "PNG")),
        ("PNG", sixteen_bit_png(colour)),
        ("PNG", saved(gray, "PNG", pnginfo=texts)),
        ("PNG", saved(gray.convert("1"), "PNG")),
        ("PNG", saved(rgb, "PNG", **several)),
        ("JPEG", saved(rgb, "JPEG", exif=exif, dpi=(300, 300))),
        ("JPEG", saved(gray, "JPEG", progressive=True, xmp=XMP, comment=b"a comment")),
        ("JPEG", saved(rgb.convert("CMYK"), "JPEG")),
        ("JPEG", saved(rgb, "JPEG", subsampling=0, restart_marker_blocks=1)),
        ("WebP", saved(rgb, "WEBP", exif=exif)),
        ("WebP", saved(rgba, "WEBP", lossless=True)),
        ("WebP", saved(rgb, "WEBP", **several)),
        ("TIFF", saved(rgb, "TIFF", dpi=(72, 72), exif=exif)),
        ("TIFF", saved(rgba, "TIFF", compression="tiff_lzw")),
        ("TIFF", saved(sixteen, "TIFF", compression="tiff_adobe_deflate")),
        ("TIFF", sixteen_bit_tiff(colour)),
        ("TIFF", saved(rgb, "TIFF", compression="jpeg")),
        ("TIFF", saved(rgb, "TIFF", **several)),
        ("GIF", saved(rgb, "GIF")),
        ("GIF", saved(rgb, "GIF", **several)),
        ("BMP", saved(rgb, "BMP")),
        ("BMP", saved(gray.convert("1"), "BMP")),
        ("BMP", saved(rgba, "BMP")),
        ("PPM", saved(rgb, "PPM")),
        *_from_optional_decoders(rgb, rgba),
    ]


def _from_optional_decoders(rgb: Image.Image, rgba: Image.Image) -> list[tuple[str, bytes]]:
    found = []
    if features.check("avif"):
        found += [("AVIF", saved(rgb, "AVIF", speed=10)), ("AVIF", saved(rgba, "AVIF", speed=10))]
    if features.check("jpg_2000"):
        found += [("JPEG2000", saved(rgb, "JPEG2000"))]
    return found


def saved(image: Image.Image, format: str, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format, **options)
    return stream.getvalue()


def chunk(kind: bytes, body: bytes) -> bytes:
    """One piece of a PNG, with its length and checksum."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width: int, height: int, depth: int, colour: int, packed: bytes) -> bytes:
    """`packed`: the compressed rows, each after its filter byte."""
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    pieces = chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + pieces


def sixteen_bit_png(pixels: NDArray[np.uint16]) -> bytes:
    """(H, W, 3)"""
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    return png(pixels.shape[1], pixels.shape[0], 16, 2, zlib.compress(rows))


def sixteen_bit_tiff(pixels: NDArray[np.uint16]) -> bytes:
    """(H, W, 3)"""
    height, width, channels = pixels.shape
    data, start = pixels.astype("<u2").tobytes(), 8 + 2 + 12 * 9 + 4
    entries = [
        (256, 4, 1, width),
        (257, 4, 1, height),
        (258, 3, channels, start),  # bits a sample, written behind the tags
        (259, 3, 1, 1),
        (262, 3, 1, 2),
        (273, 4, 1, start + 2 * channels),
        (277, 3, 1, channels),
        (278, 4, 1, height),
        (279, 4, 1, len(data)),
    ]
    tags = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    head = struct.pack("<2sHIH", b"II", 42, 8, len(entries))
    bits = struct.pack("<HHH", 16, 16, 16)
    return head + tags + bytes(4) + bits + bytes(data)


# --- damage ------------------------------------------------------------------------------------


def cut_short(data: bytes, rng: Random) -> bytes:
    return data[: rng.integers(0, len(data))]


def bits_flipped(data: bytes, rng: Random) -> bytes:
    damaged = bytearray(data)
    for place in rng.integers(0, len(data), rng.integers(1, 20)):
        damaged[place] ^= 1 << int(rng.integers(0, 8))
    return bytes(damaged)


def header_flipped(data: bytes, rng: Random) -> bytes:
    return bits_flipped(data[:64], rng) + data[64:]


def zeroed(data: bytes, rng: Random) -> bytes:
    start, length = rng.integers(0, len(data)), rng.integers(1, 200)
    return data[:start] + bytes(length) + data[start + length :]


def swapped(data: bytes, rng: Random) -> bytes:
    a, b, c = sorted(rng.integers(0, len(data), 3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def doubled(data: bytes, rng: Random) -> bytes:
    a, b = sorted(rng.integers(0, len(data), 2))
    return data[:b] + data[a:]


def huge(data: bytes, rng: Random) -> bytes:
    """Its width or height, wherever the header has it, becomes something enormous."""
    large = int(rng.choice([3000, 13000, 40000, 65535, 2**24 + 1, 2**31 - 1, 2**32 - 1]))
    for side in SIZE if rng.random() < 0.7 else SIZE[: rng.integers(1, 3)]:
        for code in (">I", "<I", ">H", "<H"):
            value = large if code[1] == "I" else min(large, 65535)
            head = data[:400].replace(struct.pack(code, side), struct.pack(code, value))
            data = head + data[400:]
    return data


def other_start(data: bytes, rng: Random) -> bytes:
    _, other = originals()[rng.integers(len(originals()))]
    length = int(rng.integers(2, 64))
    return other[:length] + data[length:]


def nothing(data: bytes, rng: Random) -> bytes:
    if rng.random() < 0.5:
        return bytes(int(rng.integers(0, 3)))
    return rng.bytes(int(rng.integers(1, 300)))


def long_tail(data: bytes, rng: Random) -> bytes:
    return data + rng.bytes(int(rng.integers(1, 5000)))


def whole(data: bytes, rng: Random) -> bytes:
    return data


DAMAGE: dict[str, Callable[[bytes, Random], bytes]] = {
    damage.__name__: damage
    for damage in (
        cut_short,
        bits_flipped,
        header_flipped,
        zeroed,
        swapped,
        doubled,
        huge,
        other_start,
        nothing,
        long_tail,
        whole,
    )
}


def repaired(data: bytes) -> bytes:
    """A PNG whose chunks have the checksums of what is in them now, so that it is read further."""
    out, at = bytearray(data[:8]), 8
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        body = data[at + 4 : at + 8 + length]
        if len(data) < at + 12 + length:
            break
        out += data[at : at + 4] + body + struct.pack(">I", zlib.crc32(body))
        at += 12 + length
    return bytes(out) + data[at:]


def damaged(number: int, seed: int) -> tuple[str, str, bytes]:
    """The format, what was done to it, and the bytes."""
    rng = np.random.default_rng((seed, number))
    name, data = originals()[rng.integers(len(originals()))]
    how = str(rng.choice(list(DAMAGE)))
    data = DAMAGE[how](data, rng)
    if name == "PNG" and rng.random() < 0.7:
        data = repaired(data)
    return name, how, data
