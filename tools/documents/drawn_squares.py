"""`python tools/documents/drawn_squares.py UNPACKED OUT.tar`: drawings as squares to train on.

UNPACKED contains Debian's openclipart-png after `dpkg -x`. Each drawing with a clear up becomes a
few squares, on white or on a light or dark colour, with margins of different widths, stored without
loss: the block grid of a JPEG would show which way is up. OUT is an archive for
`python -m radialbeams.training.data.cache OUT.tar CACHE --size 192 --group drawings`.

Drawings of the test part are left out, and so are all that resemble one of them: many drawings come
in several versions, whose names differ in a number.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))

from radialbeams.files import write_whole
from radialbeams.images.fingerprints import fingerprint, first_near
from tools.documents.drawings import drawings
from tools.documents.measure import opened

SIDE = 208  # pixels of a square
MARGINS = (0.02, 0.25)  # on each side of the longer side, as a share of the square
ON_WHITE = 0.5  # share of the squares
NEAR = 20  # bits in which the fingerprints of two versions of a drawing differ, at most


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="drawn_squares.py")
    parser.add_argument("unpacked", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--each", type=int, default=3, help="squares of a drawing")
    arguments = parser.parse_args(argv)
    files = drawings(arguments.unpacked, test=False)
    kept = unlike(files, drawings(arguments.unpacked, test=True))
    print(f"{len(kept):,} of {len(files):,} drawings; the others resemble one of the test part")
    write_whole(arguments.out, lambda part: write(kept, part, arguments.each))
    return 0


def unlike(files: Sequence[Path], tested: Sequence[Path]) -> list[Path]:
    """The files that resemble none of the tested ones, by name and by fingerprint."""
    names = {version_of(path.name) for path in tested}
    others = [path for path in files if version_of(path.name) not in names]
    bits, tested_bits = (
        np.stack([fingerprint(opened(path)) for path in paths]) for paths in (others, tested)
    )
    near = first_near(bits, tested_bits, NEAR)
    return [path for path, index in zip(others, near, strict=True) if index < 0]


def version_of(name: str) -> str:
    """The name without numbers and ending: that of all versions of a drawing."""
    return re.sub(r"[\W\d_]+", "", Path(name).stem.lower())


def write(files: Sequence[Path], out: Path, each: int) -> None:
    with tarfile.open(out, "w") as archive:
        for path in files:
            image = Image.open(path).convert("RGBA")
            image.thumbnail((2 * SIDE, 2 * SIDE), Image.Resampling.LANCZOS)
            for number in range(each):
                data = io.BytesIO()
                squared(image, Random(f"{path.name} {number}")).save(data, "WEBP", lossless=True)
                member = tarfile.TarInfo(f"drawing-{path.stem}-{number}.webp")
                member.size = data.tell()
                data.seek(0)
                archive.addfile(member, data)


def squared(drawing: Image.Image, random: Random) -> Image.Image:
    """The drawing in the middle of a square of one colour."""
    margin = random.uniform(*MARGINS)
    scale = (1 - 2 * margin) * SIDE / max(drawing.size)
    size = tuple(max(1, round(side * scale)) for side in drawing.size)
    small = drawing.resize(size, Image.Resampling.LANCZOS)
    square = Image.new("RGB", (SIDE, SIDE), _paper(random))
    left, top = ((SIDE - side) // 2 for side in size)
    square.paste(small, (left, top), small)
    return square


def _paper(random: Random) -> tuple[int, int, int]:
    """White, or a colour: light more often than dark, as most drawings are made for."""
    if random.random() < ON_WHITE:
        return (255, 255, 255)
    low, high = (170, 255) if random.random() < 0.8 else (0, 90)
    return tuple(random.randint(low, high) for _ in range(3))  # type: ignore[return-value]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
