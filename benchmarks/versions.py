"""Files to answers with this version and an older one, in turns.

    git archive COMMIT radialbeams | tar x -C /tmp/older
    python -m benchmarks.versions /tmp/older --images LFW [--files 4000] [--rounds 3] [--json]

Both run `radialbeams angle` with `ring.coil100` and two workers on the same small JPEGs, with
modules that are compiled already, as after an installation. The ratio is that of the best rounds,
by the clock and in processor time, start included. The goal is 1.7 times the version of commit
3a05d47; exits 1 if it is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.files import COMMAND, environment, gathered

GOAL = 1.7
HERE = Path(__file__).parents[1]
OPTIONS = ("--json", "--workers", "2", "--model", "ring.coil100")


def spent(version: Path, folder: Path) -> dict[str, float]:
    """Seconds of one run: by the clock, and of all processors together."""
    where = environment(folder.parent / "compiled") | {"PYTHONPATH": str(version.resolve())}
    before, started = os.times(), time.perf_counter()
    subprocess.run(
        [*COMMAND, "angle", str(folder), *OPTIONS],
        check=True,
        cwd=folder.parent,  # otherwise the package in the current folder would be imported
        env=where,
        stdout=subprocess.DEVNULL,
    )
    wall, after = time.perf_counter() - started, os.times()
    user = after.children_user - before.children_user
    return {"wall": wall, "cpu": user + after.children_system - before.children_system}


def measure(older: Path, images: Path | None, files: int, rounds: int) -> dict[str, float]:
    versions = {"older": older, "this": HERE}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "images"
        count = len(gathered(images, folder, files))
        load = os.getloadavg()[0]
        first = Path(name) / "first"
        gathered(images, first, 2)
        for place in versions.values():
            spent(place, first)  # compiles the modules
        runs = [{v: spent(place, folder) for v, place in versions.items()} for _ in range(rounds)]
    best = {
        (version, clock): min(run[version][clock] for run in runs)
        for version in versions
        for clock in ("wall", "cpu")
    }
    return {
        "files": count,
        **{f"{version}_a_second": round(count / best[version, "wall"], 1) for version in versions},
        **{
            f"{version}_cpu_ms": round(1000 * best[version, "cpu"] / count, 3)
            for version in versions
        },
        "ratio_wall": round(best["older", "wall"] / best["this", "wall"], 3),
        "ratio_cpu": round(best["older", "cpu"] / best["this", "cpu"], 3),
        "load_before": load,
    }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("older", type=Path, help="the folder that holds the older package")
    parser.add_argument("--images", type=Path, help="a folder of images, LFW's if you have it")
    parser.add_argument("--files", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    arguments = parser.parse_args(argv)
    figures = measure(arguments.older, arguments.images, arguments.files, arguments.rounds)
    if arguments.json:
        print(json.dumps(figures))
    else:
        print("\n".join(f"{name:<18}{value:>10g}" for name, value in figures.items()))
    return 0 if figures["ratio_wall"] >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
