"""Damaged image files: each gives a picture or one sentence, and quickly.

    python tests/fuzz.py --files 10000 --seed 0 [--jobs 2]

Small valid files of every common format are made on the fly and damaged: cut short, bits flipped,
zeroed, chunks swapped, headers that claim a huge picture, bytes of one format behind the start of
another. Each goes through read, read_small, turn and encode. Exits 1 if anything but an
ImageError is raised, if a sentence is none, or if a file takes more than five seconds; a worker
that dies or hangs is told with the number of its file, which --first repeats.
"""

from __future__ import annotations

import argparse
import faulthandler
import io
import re
import resource
import struct
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache

import numpy as np
from PIL import Image, PngImagePlugin

from radialbeams.images import ImageError, encode, missing, read, read_small, turn
from radialbeams.images.sixteen_bit import as_gray, sixteen_bit_png, sixteen_bit_tiff

LIMIT = 5.0  # seconds of computing for one file
SIZE = (37, 23)
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf tiff:Orientation="6"/></x:xmpmeta>'
Random = np.random.Generator


# --- files to damage ---------------------------------------------------------------------------


@cache
def originals() -> list[tuple[str, bytes]]:
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (*SIZE[::-1], 4), np.uint8)
    rgba = Image.fromarray(noise)
    rgb, gray = rgba.convert("RGB"), rgba.convert("L")
    deep = Image.fromarray(rng.integers(0, 65536, SIZE[::-1], np.uint16))
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
        ("PNG", saved(deep, "PNG")),
        ("PNG", sixteen_bit_png(colour, saved(rgb, "PNG"))),
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
        ("TIFF", saved(deep, "TIFF", compression="tiff_adobe_deflate")),
        ("TIFF", sixteen_bit_tiff(colour, saved(as_gray(colour), "TIFF"))),
        ("TIFF", saved(rgb, "TIFF", compression="jpeg")),
        ("TIFF", saved(rgb, "TIFF", **several)),
        ("GIF", saved(rgb, "GIF")),
        ("GIF", saved(rgb, "GIF", **several)),
        ("BMP", saved(rgb, "BMP")),
        ("BMP", saved(gray.convert("1"), "BMP")),
        ("BMP", saved(rgba, "BMP")),
    ]


def saved(image: Image.Image, format: str, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format, **options)
    return stream.getvalue()


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
    return bytes(rng.integers(0, 3)) if rng.random() < 0.5 else rng.bytes(rng.integers(1, 300))


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


def damaged(number: int, seed: int) -> tuple[str, bytes]:
    rng = np.random.default_rng((seed, number))
    name, data = originals()[rng.integers(len(originals()))]
    how = str(rng.choice(list(DAMAGE)))
    data = DAMAGE[how](data, rng)
    if name == "PNG" and rng.random() < 0.7:
        data = repaired(data)
    return f"{name}, {how}", data


# --- what must hold ----------------------------------------------------------------------------


def check(number: int, seed: int) -> tuple[str, str | None]:
    """What the file was, and what is wrong with how it was met (None: nothing)."""
    label, data = damaged(number, seed)
    start = time.process_time()  # a busy machine is not the file's fault
    try:
        picture = read(data, first_frame=number % 2 == 0)
        read_small(data, 16, first_frame=True)
        missing(data, encode(turn(picture, 33.3)))
        outcome = "read"
    except ImageError as error:
        outcome = "refused"
        if not re.fullmatch(r"[A-Z].{15,}[.]", str(error)):
            return label, f"no sentence: {error!s}"
    except BaseException as error:
        return label, f"{type(error).__name__}: {error}"
    seconds = time.process_time() - start
    return f"{label}: {outcome}", f"took {seconds:.1f} s" if seconds > LIMIT else None


def check_range(first: int, last: int, seed: int) -> tuple[Counter[str], list[str], int]:
    """What became of the files, what went wrong, and the memory at its highest in MB."""
    outcomes: Counter[str] = Counter()
    wrong = []
    for number in range(first, last):
        # Ends the worker if Pillow hangs where Python cannot interrupt it.
        faulthandler.dump_traceback_later(60, exit=True)
        label, problem = check(number, seed)
        outcomes[label] += 1
        if problem:
            wrong.append(f"--first {number} --seed {seed} ({label}): {problem}")
    faulthandler.cancel_dump_traceback_later()
    return outcomes, wrong, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args(argv)
    last, size = arguments.first + arguments.files, 100
    outcomes: Counter[str] = Counter()
    wrong, memory = [], 0
    with ProcessPoolExecutor(arguments.jobs) as pool:
        parts = [
            (start, pool.submit(check_range, start, min(start + size, last), arguments.seed))
            for start in range(arguments.first, last, size)
        ]
        for start, part in parts:
            try:
                counted, problems, highest = part.result()
            except Exception as error:
                wrong.append(f"--first {start} --files {size}: a worker died ({error})")
                continue
            outcomes += counted
            wrong += problems
            memory = max(memory, highest)
    for problem in wrong:
        print(problem)
    read_whole = sum(count for label, count in outcomes.items() if label.endswith(": read"))
    print(
        f"{outcomes.total()} files: {read_whole} read, {outcomes.total() - read_whole} refused, "
        f"{len(wrong)} wrong; at most {memory} MB of memory"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
