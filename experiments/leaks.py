"""The full canary grid: every protocol, network and noise, one JSON file each.

    python experiments/leaks.py --out results/leaks [--only leakfree] [--views 600000]

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

from radialbeams.training.leaks import CANARIES, JPEG_NOISES, NOISES, measure_leak
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
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    device = pick_device()
    for rendering, canary, noise in GRID:
        path = arguments.out / f"{rendering}-{canary}-{noise}.json"
        if arguments.only not in (None, rendering) or not _claim(path):
            continue
        started = time.monotonic()
        leak = measure_leak(
            rendering,
            canary,
            noise,
            views=arguments.views,
            batch=arguments.batch,
            learning_rate=3e-3,
            device=device,
        )
        result = {**asdict(leak), "seconds": round(time.monotonic() - started, 1)}
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
