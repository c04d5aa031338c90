"""Files that are small on disk and huge once decoded: refused early, within bounds of memory."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from PIL import Image, features

from .bench import Case, Family
from .command import ALL, judge_command
from .damage import chunk, png, saved, sixteen_bit_png
from .gallery import SIDE, picture

# Bytes that one process may hold: 4 GiB for the image, and the program itself.
MEMORY = 9 << 29
LIMIT = 150.0  # seconds


def check(case: Case) -> None:
    """One giant beside one good picture: the good one is done, the giant is refused or done."""
    make = GIANTS[case.number % len(GIANTS)]
    folder = case.folder / "in"
    folder.mkdir()
    picture(case.rng).save(folder / "good.png")
    name = make(folder)
    if name is None:
        case.skip(f"this Pillow cannot make {make.__name__.replace('_', ' ')}")
        return
    for words in (("angle", "in", "--model", ALL[1], "--json"), _turning(case)):
        done = case.command.run(*words, cwd=case.folder, limit=LIMIT, measure=True)
        what = f"{make.__name__.replace('_', ' ')}, {words[0]}"
        judge_command(case, done, (0, 1), what)
        if done.memory > MEMORY:
            case.found("other", f"{what}: a process held {done.memory / 2**30:.1f} GiB")
        records = {record.get("path"): record for record in done.records}
        if not done.hung and set(records) != {"in/good.png", f"in/{name}"}:
            case.found("omitted", f"{what}: records of {sorted(map(str, records))}")
        if "error" in records.get("in/good.png", {}):
            case.found("omitted", f"{what}: the picture beside it failed")


def _turning(case: Case) -> tuple[str, ...]:
    return ("upright", "in", "-o", "out", *ALL, "--json", "--workers", "1")


# --- giants ------------------------------------------------------------------------------------


def sixteen_bit_png_of_177_megapixels(folder: Path) -> str:
    return _blank_png(folder, 13_300, 13_300, 16, 6)


def gray_png_of_199_megapixels(folder: Path) -> str:
    return _blank_png(folder, 14_100, 14_100, 8, 0)


def png_of_one_row(folder: Path) -> str:
    return _blank_png(folder, 150_000_000, 1, 8, 2)


def _blank_png(folder: Path, width: int, height: int, depth: int, colour: int) -> str:
    channels = {0: 1, 2: 3, 6: 4}[colour]
    row = bytes(1 + width * channels * depth // 8)
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    (folder / "giant.png").write_bytes(png(width, height, depth, colour, packed))
    return "giant.png"


def png_with_a_text_bomb(folder: Path) -> str:
    text = b"Title\0\0" + zlib.compress(bytes(500_000_000), 1)
    data = saved(Image.new("RGB", (SIDE, SIDE)), "PNG")
    (folder / "giant.png").write_bytes(data[:33] + chunk(b"zTXt", text) + data[33:])
    return "giant.png"


def png_with_a_profile_bomb(folder: Path) -> str:
    profile = b"icc\0\0" + zlib.compress(bytes(500_000_000), 1)
    data = saved(Image.new("RGB", (SIDE, SIDE)), "PNG")
    (folder / "giant.png").write_bytes(data[:33] + chunk(b"iCCP", profile) + data[33:])
    return "giant.png"


def jpeg_with_a_sparse_tail(folder: Path) -> str:
    return _with_tail(folder / "giant.jpg", saved(Image.new("RGB", (SIDE, SIDE)), "JPEG"), 6 << 30)


def tiff_with_a_sparse_gigabyte(folder: Path) -> str:
    return _with_tail(folder / "giant.tif", saved(Image.new("RGB", (SIDE, SIDE)), "TIFF"), 1 << 30)


def tiff_of_a_gigabyte(folder: Path) -> str:
    """Uncompressed, 18,000 × 18,000 pixels, all of them holes in the file."""
    side, entries = 18_000, 9
    start = 8 + 2 + 12 * entries + 4
    tags = [(256, 4, 1, side), (257, 4, 1, side), (258, 3, 3, start), (259, 3, 1, 1),
            (262, 3, 1, 2), (273, 4, 1, 4096), (277, 3, 1, 3), (278, 4, 1, side),
            (279, 4, 1, 3 * side * side)]  # fmt: skip
    head = struct.pack("<2sHIH", b"II", 42, 8, entries)
    body = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    data = head + body + bytes(4) + struct.pack("<HHH", 8, 8, 8)
    return _with_tail(folder / "giant.tif", data, 4096 + 3 * side * side)


def tiff_with_a_million_tags(folder: Path) -> str:
    data = struct.pack("<2sHIH", b"II", 42, 8, 65535)
    tags = b"".join(struct.pack("<HHII", n, 4, 2**30, 8) for n in range(65535))
    (folder / "giant.tif").write_bytes(data + tags + bytes(4))
    return "giant.tif"


def _with_tail(path: Path, data: bytes, size: int) -> str:
    with open(path, "wb") as file:
        file.write(data)
        file.truncate(size)
    return path.name


def gif_of_65535_squared(folder: Path) -> str:
    data = bytearray(saved(Image.new("P", (SIDE, SIDE)), "GIF"))
    data[6:10] = struct.pack("<HH", 65535, 65535)
    (folder / "giant.gif").write_bytes(data)
    return "giant.gif"


def gif_of_very_many_frames(folder: Path) -> str:
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\x00"
    head = b"GIF89a" + struct.pack("<HHBBB", SIDE, SIDE, 0x80, 0, 0) + bytes(6)
    (folder / "giant.gif").write_bytes(head + frame * 300_000 + b"\x3b")
    return "giant.gif"


def jpeg_of_very_many_scans(folder: Path) -> str:
    """A progressive picture whose last scan is repeated: each costs a pass over all pixels."""
    data = saved(Image.new("RGB", (4000, 4000)), "JPEG", progressive=True)
    scan = data[data.rindex(b"\xff\xda") : data.rindex(b"\xff\xd9")]
    (folder / "giant.jpg").write_bytes(data[:-2] + scan * 3000 + b"\xff\xd9")
    return "giant.jpg"


def jpeg_of_65500_squared(folder: Path) -> str:
    data = bytearray(saved(Image.new("RGB", (SIDE, SIDE)), "JPEG"))
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", 65500, 65500)
    (folder / "giant.jpg").write_bytes(data)
    return "giant.jpg"


def webp_of_the_largest_size(folder: Path) -> str:
    image = Image.new("RGB", (16_383, 12_000))
    image.save(folder / "giant.webp", lossless=True, method=0, quality=0)
    return "giant.webp"


def ppm_with_a_huge_claim(folder: Path) -> str:
    return _with_tail(folder / "giant.ppm", b"P6 14000 14000 255\n", 14_000 * 14_000 * 3 + 40)


def bmp_with_a_huge_claim(folder: Path) -> str:
    data = bytearray(saved(Image.new("RGB", (SIDE, SIDE)), "BMP"))
    data[18:26] = struct.pack("<ii", 2**31 - 1, -(2**31 - 1))
    (folder / "giant.bmp").write_bytes(data)
    return "giant.bmp"


def sixteen_bit_colour_png(folder: Path) -> str:
    import numpy as np

    (folder / "giant.png").write_bytes(sixteen_bit_png(np.zeros((4000, 4000, 3), np.uint16)))
    return "giant.png"


def jpeg2000_bomb(folder: Path) -> str | None:
    if not features.check("jpg_2000"):
        return None
    data = bytearray(saved(Image.new("RGB", (SIDE, SIDE)), "JPEG2000"))
    at = data.index(b"\xff\x51") + 6  # the size of the picture, behind the marker
    data[at : at + 8] = struct.pack(">II", 2**31 - 1, 2**31 - 1)
    (folder / "giant.jp2").write_bytes(data)
    return "giant.jp2"


def ten_bit_avif(folder: Path) -> str | None:
    """Pillow writes eight bits; the header is changed to claim ten."""
    if not features.check("avif"):
        return None
    data = bytearray(saved(Image.new("RGB", (SIDE, SIDE)), "AVIF", speed=10))
    at = data.index(b"pixi") + 9
    data[at : at + 3] = b"\x0a\x0a\x0a"
    configuration = data.index(b"av1C") + 6
    data[configuration] |= 0x40  # high bit depth
    (folder / "giant.avif").write_bytes(data)
    return "giant.avif"


def avif_of_a_huge_claim(folder: Path) -> str | None:
    if not features.check("avif"):
        return None
    data = bytearray(saved(Image.new("RGB", (SIDE, SIDE)), "AVIF", speed=10))
    at = data.index(b"ispe") + 8
    data[at : at + 8] = struct.pack(">II", 60_000, 60_000)
    (folder / "giant.avif").write_bytes(data)
    return "giant.avif"


GIANTS: tuple[Callable[[Path], str | None], ...] = (
    sixteen_bit_png_of_177_megapixels,
    jpeg_with_a_sparse_tail,
    tiff_of_a_gigabyte,
    tiff_with_a_sparse_gigabyte,
    gray_png_of_199_megapixels,
    png_of_one_row,
    png_with_a_text_bomb,
    png_with_a_profile_bomb,
    tiff_with_a_million_tags,
    gif_of_65535_squared,
    gif_of_very_many_frames,
    jpeg_of_very_many_scans,
    jpeg_of_65500_squared,
    webp_of_the_largest_size,
    ppm_with_a_huge_claim,
    bmp_with_a_huge_claim,
    sixteen_bit_colour_png,
    jpeg2000_bomb,
    ten_bit_avif,
    avif_of_a_huge_claim,
)
FAMILY = Family("giants", "small files that are huge once decoded", check, cases=len(GIANTS))
