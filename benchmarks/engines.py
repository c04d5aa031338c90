"""What the Ray engine costs beside the plain batch: processor time, checked at three sizes.

    python -m benchmarks.engines [--sizes 500 1000 2000] [--workers 2] [--json]

Both commands turn the same JPEGs of 250 pixels. Their processor time, that of all processes that
they start, is `start + each × images`; the two are fitted to the smallest and the largest size, and
the size between them shows how far off the model is. Needs the `ray` extra.
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

from benchmarks.files import gathered
from radialbeams.stored import JsonDict

TICKS = os.sysconf("SC_CLK_TCK")
COMMAND = [sys.executable, "-m", "radialbeams", "upright"]
ENGINES: dict[str, list[str]] = {"plain": [], "ray": ["--engine", "ray"]}
EVERY = 0.2  # seconds between two looks at the processes


def processor_seconds(command: list[str]) -> dict[str, float]:
    """Of a command and all processes below it, as far as they could be seen before they ended."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    spent: dict[int, float] = {}
    while process.poll() is None:
        spent |= _times(process.pid)
        time.sleep(EVERY)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed; run it by hand to see why.")
    return {"cpu": sum(spent.values()), "wall": time.perf_counter() - started}


def _times(root: int) -> dict[int, float]:
    """Seconds of each process at or below `root`."""
    parents, seconds = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(entry.parent.name)
        parents[pid] = int(fields[1])
        seconds[pid] = (int(fields[11]) + int(fields[12])) / TICKS
    below = {root}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return {pid: seconds[pid] for pid in below if pid in seconds}


def measure(sizes: list[int], workers: int, model: str) -> JsonDict:
    costs: dict[str, dict[int, dict[str, float]]] = {name: {} for name in ENGINES}
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            gathered(None, Path(name) / "images", size)
            for engine, options in ENGINES.items():
                line = [*COMMAND, f"{name}/images", "-o", f"{name}/{engine}", *options]
                line += ["--workers", str(workers), "--model", model, "--min-confidence", "0"]
                costs[engine][size] = processor_seconds(line)
    return {"workers": workers, "sizes": costs, "model": {n: _fitted(f) for n, f in costs.items()}}


def _fitted(costs: dict[int, dict[str, float]]) -> dict[str, float]:
    first, *between, last = sorted(costs)
    each = (costs[last]["cpu"] - costs[first]["cpu"]) / (last - first)
    start = costs[first]["cpu"] - each * first
    off = [abs(start + each * size - costs[size]["cpu"]) / costs[size]["cpu"] for size in between]
    return {
        "start_s": round(start, 2),
        "each_ms": round(1000 * each, 3),
        "off_between": round(max(off, default=0.0), 3),
    }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 1000, 2000])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--model", default="ring.coil100")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    asked = parser.parse_args(argv)
    costs = measure(asked.sizes, asked.workers, asked.model)
    if asked.json:
        print(json.dumps(costs))
        return 0
    for engine, fit in costs["model"].items():
        print(
            f"{engine:<8}{fit['start_s']:>8.2f} s to start {fit['each_ms']:>8.2f} ms an image"
            f"   model off by {fit['off_between']:.1%}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
