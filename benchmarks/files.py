"""How fast files become answers: the whole command, its parts, one large photo, and the start.

    python benchmarks/files.py [--images FOLDER] [--files 4000] [--workers 2] [--json]

Bars, on two free cores: 400 images a second from files to JSON lines (250 px JPEGs, two workers,
the start of the command included), 120 ms from a 12-megapixel JPEG to its angle, 0.4 s for
`radialbeams --help` and 0.3 s for `import radialbeams` over bare Python. Exits 1 if one is missed.
FOLDER is best that of LFW; without it, copies of a picture in the package stand for it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from radialbeams import images
from radialbeams.batch.job import Job, made
from radialbeams.batch.journal import stage
from radialbeams.batch.plan import Plan
from radialbeams.canonicalizer import Canonicalizer
from radialbeams.demo import PICTURES

BARS = {
    "images_a_second": (400, "at least"),
    "large_jpeg_ms": (120, "at most"),
    "help_s": (0.4, "at most"),
    "import_s": (0.3, "at most"),
}
COMMAND = [sys.executable, "-c", "from radialbeams.cli import run; run()"]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
LARGE = (4000, 3000)
SPLIT = 320  # files that the parts are measured on


def seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def best(repeats: int, call: Callable[[], Any]) -> float:
    """Of several, because whatever else runs here only ever adds time."""
    return min(seconds(call) for _ in range(repeats))


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | ONE_THREAD)


# --- what is measured ---


def throughput(folder: Path, files: int, asked: argparse.Namespace) -> dict[str, float]:
    """Files to JSON lines by the clock, and the processor's time, which no neighbour adds to."""
    options = ("--json", "--workers", str(asked.workers), "--model", asked.model)
    before = os.times()
    wall = best(asked.repeats, lambda: run(*COMMAND, "angle", str(folder), *options))
    after = os.times()
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    return {
        "images_a_second": files / wall,
        "cpu_ms_an_image": 1000 * spent / asked.repeats / files,
    }


def split(paths: list[Path], model: str, scratch: Path) -> dict[str, float]:
    """Milliseconds an image of each part, one after the other on one thread."""
    canonicalizer = Canonicalizer(model, threads=1)
    card, job = canonicalizer.card, Job(model, turns=True, min_confidence=0)
    size, channels = card["config"]["view_size"], card["config"]["channels"]
    found: dict[str, Any] = {}

    def decode() -> None:
        found["small"] = [images.read_small(path, canonicalizer.parent_size) for path in paths]

    def view() -> None:
        found["views"] = np.stack(
            [images.view(small, card["protocol"], size, channels) for small in found["small"]]
        )

    def answer() -> None:
        parts = np.array_split(found["views"], max(len(paths) // 16, 1))
        found["answers"] = [one for part in parts for one in canonicalizer.answers_from_views(part)]

    def write() -> None:
        for path, one in zip(paths, found["answers"], strict=True):
            stage(made(path.read_bytes(), one, job)[1], str(scratch / path.name))

    parts = {"decode": decode, "view": view, "model": answer, "write": write}
    return {name: 1000 * best(3, part) / len(paths) for name, part in parts.items()}


def large_jpeg(path: Path, model: str) -> float:
    """Milliseconds from a 12-megapixel file to its angle, the model being loaded."""
    canonicalizer = Canonicalizer(model, threads=1)
    canonicalizer.answers([path])
    return 1000 * best(7, lambda: canonicalizer.answers([path]))


def starts() -> dict[str, float]:
    bare = best(5, lambda: run(sys.executable, "-c", "pass"))
    return {
        "help_s": best(5, lambda: run(*COMMAND, "--help")),
        "import_s": best(5, lambda: run(sys.executable, "-c", "import radialbeams")) - bare,
    }


# --- what it is measured on ---


def gathered(source: Path | None, folder: Path, files: int) -> list[Path]:
    """Links to the first `files` images below the source, in one folder."""
    folder.mkdir()
    for number, origin in enumerate(islice(_origins(source, folder.parent), files)):
        (folder / f"{number}{origin.suffix}").symlink_to(origin.resolve())
    return sorted(folder.iterdir())


def _origins(source: Path | None, scratch: Path) -> Iterable[Path]:
    if source is not None:
        return (Path(item.path) for item in Plan((str(source),), writes=False).items())
    small = scratch / "small.jpg"
    _astronaut().resize((250, 250), Image.Resampling.LANCZOS).save(small, quality=90)
    return _again_and_again(small)


def _again_and_again(path: Path) -> Iterator[Path]:
    while True:
        yield path


def make_large(path: Path) -> Path:
    """Enlarged, with the grain of a camera, so that it is as hard to decode as a photo."""
    enlarged = np.asarray(_astronaut().resize(LARGE, Image.Resampling.BICUBIC), dtype=np.float32)
    grain = np.random.default_rng(0).normal(0, 6, enlarged.shape)
    Image.fromarray((enlarged + grain).clip(0, 255).astype(np.uint8)).save(path, quality=92)
    return path


def _astronaut() -> Image.Image:
    with Image.open(PICTURES / "astronaut.webp") as picture:
        return picture.convert("RGB")


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        paths = gathered(asked.images, scratch / "images", asked.files)
        large = make_large(scratch / "large.jpg")
        return {
            "model": asked.model,
            "files": len(paths),
            "workers": asked.workers,
            **throughput(scratch / "images", len(paths), asked),
            "milliseconds": split(paths[:SPLIT], asked.model, scratch),
            "large_jpeg_ms": large_jpeg(large, asked.model),
            **starts(),
            "load_before": asked.load,
        }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, help="a folder of images, LFW's if you have it")
    parser.add_argument("--files", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--model", default="ring.coil100")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    asked = parser.parse_args(argv)
    asked.load = os.getloadavg()[0]  # above zero, others were at work, and the times are too long
    result = measure(asked)
    missed = [
        name
        for name, (bar, side) in BARS.items()
        if (result[name] < bar if side == "at least" else result[name] > bar)
    ]
    if asked.json:
        print(json.dumps({**result, "missed": missed}))
    else:
        _print_table(result, missed)
    return 1 if missed else 0


def _print_table(result: dict[str, Any], missed: list[str]) -> None:
    print(f"{result['files']} files, {result['workers']} workers, {result['model']}")
    for name, (bar, side) in BARS.items():
        verdict = "MISSED" if name in missed else "met"
        print(f"{name:<18}{result[name]:>9.2f}   {side} {bar}: {verdict}")
    for part, value in result["milliseconds"].items():
        print(f"{part:<18}{value:>9.2f} ms an image, one thread")
    print(f"{'processor':<18}{result['cpu_ms_an_image']:>9.2f} ms an image, the whole command")
    print(f"load before: {result['load_before']:.1f}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
