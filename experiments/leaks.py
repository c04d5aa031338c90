"""The full canary grid: every protocol, network and noise, one JSON file each.

    python experiments/leaks.py --out results/leaks [--only leakfree] [--views 600000]
    python experiments/leaks.py --out results/leaks --small --batch 64     # hours on a CPU

`--small` takes the smaller networks and parents of `radialbeams leaks --quick`.

Needs torch alone. A combination whose file is there already is left out, so the grid can be
killed and continued, and several processes can share it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict
from pathlib import Path

from radialbeams.training.leaks import CANARIES, FULL, QUICK, measure_leak
from radialbeams.training.noise import JPEG_NOISES, NOISES
from radialbeams.training.weights import pick_device

GRID = [
    *(("leakfree", canary, noise) for noise in NOISES for canary in CANARIES),
    *(("bilinear", canary, "white") for canary in CANARIES),
    *(("leakfree", canary, noise) for noise in JPEG_NOISES for canary in CANARIES),
    ("paper", "ring", "white"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", help="one protocol: leakfree, bilinear or paper")
    parser.add_argument("--views", type=int, default=600_000)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--canary", help="ring or cnn")
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    device = pick_device()
    for rendering, canary, noise in GRID:
        suffix = "-small" if arguments.small else ""
        path = arguments.out / f"{rendering}-{canary}-{noise}{suffix}.json"
        if arguments.only not in (None, rendering) or arguments.canary not in (None, canary):
            continue
        if not _claim(path):
            continue
        started = time.monotonic()
        settings = {**(QUICK if arguments.small else FULL)}
        settings |= {"views": arguments.views, "batch": arguments.batch}
        leak = measure_leak(rendering, canary, noise, **settings, device=device)
        result = {**asdict(leak), "seconds": round(time.monotonic() - started, 1)}
        result |= {name: settings[name] for name in ("parent", "small", "fourfold")}
        path.write_text(json.dumps({**result, "hardware": device.type}, indent=1) + "\n")
        print(json.dumps(result), flush=True)


def _claim(path: Path) -> bool:
    """True for the one process that comes first; a killed run's claim has to be removed."""
    try:
        os.close(os.open(path.with_suffix(".claimed"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return not path.exists()


if __name__ == "__main__":
    main()
