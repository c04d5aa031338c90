"""What the Ray engine costs beside the plain batch: processor time, checked at three sizes.

    python -m benchmarks.engines [--sizes 500 1000 2000] [--workers 2] [--json]

Both commands turn the same JPEGs of 250 pixels. Their processor time, with all processes that
they start, is `start + each × images`; the two are fitted to the smallest and the largest size, and
the size between them shows how far off the model is. At the largest size, Ray also runs with one
worker: the speed-up and the overhead against the plain batch are by the clock, start included, so
they mean something only on cores that are free. Modules are compiled already, as after an
installation: Ray starts a dozen processes that import it. 1,000, 3,000 and 8,000 images take four
minutes on two cores. Needs the `ray` extra.
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

from benchmarks.files import environment, gathered
from radialbeams.stored import JsonDict

TICKS = os.sysconf("SC_CLK_TCK")
COMMAND = [sys.executable, "-m", "radialbeams", "upright"]
ENGINES: dict[str, list[str]] = {"plain": [], "ray": ["--engine", "ray"]}
EVERY = 0.2  # seconds between two looks at the processes


def processor_seconds(command: list[str], compiled: Path) -> dict[str, float]:
    """Seconds of a command and all its processes, as last seen before they ended."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment(compiled))
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
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _both(folder, 2, workers, model)  # compiles the modules
        for size in sizes:
            for engine, seconds in _both(folder, size, workers, model).items():
                costs[engine][size] = seconds
        largest = max(sizes)
        alone = _spent(folder, "ray", largest, 1, model)
    plain, ray = (costs[engine][largest]["wall"] for engine in ENGINES)
    return {
        "workers": workers,
        "load_before": load,
        "sizes": costs,
        "model": {engine: _fitted(times) for engine, times in costs.items()},
        "ray_with_one_worker": alone,
        "speed_up": round(alone["wall"] / ray, 3),
        "overhead": round(ray / plain - 1, 3),
    }


def _both(folder: Path, size: int, workers: int, model: str) -> dict[str, dict[str, float]]:
    return {engine: _spent(folder, engine, size, workers, model) for engine in ENGINES}


def _spent(folder: Path, engine: str, size: int, workers: int, model: str) -> dict[str, float]:
    images, out = folder / f"images-{size}", folder / f"{engine}-{size}-{workers}"
    if not images.exists():
        gathered(None, images, size)
    line = [*COMMAND, str(images), "-o", str(out), *ENGINES[engine], "--workers", str(workers)]
    line += ["--model", model, "--min-confidence", "0"]
    return processor_seconds(line, folder / "compiled")


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
    arguments = parser.parse_args(argv)
    results = measure(arguments.sizes, arguments.workers, arguments.model)
    if arguments.json:
        print(json.dumps(results))
        return 0
    for engine, fit in results["model"].items():
        print(
            f"{engine:<8}{fit['start_s']:>8.2f} s to start {fit['each_ms']:>8.2f} ms an image"
            f"   model off by {fit['off_between']:.1%}"
        )
    print(
        f"{max(arguments.sizes)} images on Ray: {results['speed_up']:.2f} times as fast as one "
        f"worker, {results['overhead']:.0%} longer than the plain batch, start included"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
