"""Packs the images that `radialbeams reproduce staircase` uses into a folder of 29 MB.

python tools/pack_coil100.py --data DIR --out DIR
"""

from __future__ import annotations

import argparse
from pathlib import Path

from radialbeams.reproduce.pack import pack


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    print(f"{pack(arguments.data, arguments.out) / 1e6:.1f} MB in {arguments.out}")


if __name__ == "__main__":
    main()
