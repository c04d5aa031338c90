"""`python tools/documents/contact_sheet.py MATERIAL OUT.png`: rendered pages to look at."""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path

from PIL import Image

from radialbeams.training.data.documents import Material, render


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("material", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--across", type=int, default=8)
    parser.add_argument("--down", type=int, default=5)
    parser.add_argument("--side", type=int, default=300)
    arguments = parser.parse_args(argv)
    material = Material(arguments.material)
    sheet = Image.new(
        "L", (arguments.across * arguments.side, arguments.down * arguments.side), 128
    )
    seconds: dict[str, list[float]] = defaultdict(list)
    for k in range(arguments.across * arguments.down):
        begun = time.perf_counter()
        page = render(material, arguments.seed, arguments.first + k)
        seconds[page.layout].append(time.perf_counter() - begun)
        image = Image.fromarray(page.pixels)
        image.thumbnail((arguments.side - 6, arguments.side - 6), Image.Resampling.LANCZOS)
        sheet.paste(
            image,
            (k % arguments.across * arguments.side + 3, k // arguments.across * arguments.side + 3),
        )
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(arguments.out)
    everything = [s for each in seconds.values() for s in each]
    print(f"{len(everything) / sum(everything):.1f} pages a second")
    for layout, each in sorted(seconds.items(), key=lambda item: -sum(item[1]) / len(item[1])):
        print(f"{layout:16} {1000 * sum(each) / len(each):6.1f} ms  ({len(each)})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
