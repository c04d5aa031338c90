"""The speed of the command: many files, its stages, one large photo, its start, and a ViT.

    python -m benchmarks.files [--images FOLDER] [--files 4000] [--workers 2] [--json]

Goals on two idle cores: 400 images per second from files to JSON lines (250 px JPEGs, two workers,
including the start of the command), 120 ms from a 12-megapixel JPEG to its angle, and 0.4 s for
`radialbeams --help` and 0.3 s for `import radialbeams` beyond the start of Python. A view takes a
fiftieth of the time of a ViT-S/14 at 224 px with `ring.coil100` and a twelfth with `ring`, all in
ONNX Runtime on one thread, measured alternately in the same run. Exits 1 if a goal is missed.
FOLDER should be that of LFW; without it, copies of a picture in the package are used.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from radialbeams import images, zoo
from radialbeams.batch.job import JobSettings
from radialbeams.batch.landing import new_token, part_of, stage
from radialbeams.batch.plan import Plan
from radialbeams.batch.processing import output_of, undo_for
from radialbeams.canonicalizer import Canonicalizer
from radialbeams.demo import PICTURES
from radialbeams.stored import JsonDict

BARS = {
    "images_a_second": (400, "at least"),
    "large_jpeg_ms": (120, "at most"),
    "help_s": (0.4, "at most"),
    "import_s": (0.3, "at most"),
}
# How many times faster than the ViT a view must be.
TIMES_FASTER = {"ring.coil100": 50, "ring": 12}
VIEWS, ROUNDS = 8, 7  # in one call, for both
COMMAND = [sys.executable, "-c", "from radialbeams.cli import run; run()"]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# Settings of Python that an ordinary user does not have: they compile every module at every start,
# and write every line on its own.
UNUSUAL = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
LARGE = (4000, 3000)
SPLIT = 320  # files that the parts are measured on


def seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def computing(call: Callable[[], Any]) -> float:
    """CPU seconds of this thread, which other processes do not affect."""
    started = time.thread_time()
    call()
    return time.thread_time() - started


def best(repeats: int, call: Callable[[], Any]) -> float:
    """The fastest of several runs in seconds, because other load only adds time."""
    return min(seconds(call) for _ in range(repeats))


def environment(compiled: Path) -> dict[str, str]:
    """Environment variables for one thread and for compiled modules, as after an installation."""
    usual = {name: value for name, value in os.environ.items() if name not in UNUSUAL}
    return usual | ONE_THREAD | {"PYTHONPYCACHEPREFIX": str(compiled)}


def run(*command: str) -> None:
    compiled = Path(tempfile.gettempdir()) / "radialbeams-compiled"
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment(compiled))


# --- what is measured ---


def throughput(folder: Path, files: int, arguments: argparse.Namespace) -> dict[str, float]:
    """Files to JSON lines: wall-clock time, and CPU time, which other processes do not affect."""
    options = ("--json", "--workers", str(arguments.workers), "--model", arguments.model)
    before = os.times()
    wall = best(arguments.repeats, lambda: run(*COMMAND, "angle", str(folder), *options))
    after = os.times()
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    return {
        "images_a_second": files / wall,
        "cpu_ms_an_image": 1000 * spent / arguments.repeats / files,
    }


def split(paths: list[Path], model: str, scratch: Path) -> dict[str, float]:
    """CPU milliseconds per image of each part, one after the other on one thread."""
    canonicalizer = Canonicalizer(model, threads=1)
    card, job = canonicalizer.card, JobSettings(model, turns=True, min_confidence=0)
    size, channels = card.network.view_size, card.network.channels
    results: JsonDict = {}

    def decode() -> None:
        results["small"] = [images.read_small(path, canonicalizer.parent_size) for path in paths]

    def view() -> None:
        results["views"] = np.stack(
            [images.view(small, card.protocol, size, channels) for small in results["small"]]
        )

    def answer() -> None:
        parts = np.array_split(results["views"], max(len(paths) // 16, 1))
        results["answers"] = [
            answer for part in parts for answer in canonicalizer.answers_from_views(part)
        ]

    token = new_token()

    def write() -> None:
        for path, estimate in zip(paths, results["answers"], strict=True):
            out = str(scratch / path.name)
            undo = undo_for(estimate, None, job)
            stage(output_of(path.read_bytes(), undo, job)[0], out, part_of(out, token))

    parts = {"decode": decode, "view": view, "model": answer, "write": write}
    return {
        name: 1000 * min(computing(part) for _ in range(3)) / len(paths)
        for name, part in parts.items()
    }


def large_jpeg(path: Path, model: str) -> float:
    """Milliseconds from a 12-megapixel file to its angle, with a loaded model."""
    canonicalizer = Canonicalizer(model, threads=1)
    canonicalizer.answers([path])
    return 1000 * best(7, lambda: canonicalizer.answers([path]))


def starts() -> dict[str, float]:
    bare = best(5, lambda: run(sys.executable, "-c", "pass"))
    return {
        "help_s": best(5, lambda: run(*COMMAND, "--help")),
        "import_s": best(5, lambda: run(sys.executable, "-c", "import radialbeams")) - bare,
    }


def times_faster(scratch: Path) -> dict[str, float]:
    """For each model with a goal: how many of its views take as long as one view of the ViT."""
    if find_spec("torch") is None:
        print("no comparison with a ViT: torch is not installed", file=sys.stderr)
        return {}
    calls = {name: _radialbeams(name) for name in TIMES_FASTER if name in zoo.names()}
    calls["vit"] = _vit(scratch)
    for call in calls.values():
        call()
    rounds = [{name: computing(call) for name, call in calls.items()} for _ in range(ROUNDS)]
    medians = {name: statistics.median(times[name] for times in rounds) for name in calls}
    vit = medians.pop("vit")
    return {name: vit / median for name, median in medians.items()}


def _radialbeams(model: str) -> Callable[[], Any]:
    canonicalizer = Canonicalizer(model, threads=1)
    size, channels = canonicalizer.card.network.view_size, canonicalizer.card.network.channels
    views = np.random.default_rng(0).random((VIEWS, channels, size, size), dtype=np.float32)
    return lambda: canonicalizer.answers_from_views(views)


def _vit(scratch: Path) -> Callable[[], Any]:
    import onnxruntime

    from benchmarks import vit

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    path = vit.export(scratch / "vit.onnx", VIEWS)
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    shape = VIEWS, 3, vit.SIDE, vit.SIDE
    pictures = np.random.default_rng(0).random(shape, dtype=np.float32)
    return lambda: session.run(None, {"images": pictures})


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
    """Enlarged and with camera noise, so that it is as slow to decode as a photo."""
    enlarged = np.asarray(_astronaut().resize(LARGE, Image.Resampling.BICUBIC), dtype=np.float32)
    grain = np.random.default_rng(0).normal(0, 6, enlarged.shape)
    Image.fromarray((enlarged + grain).clip(0, 255).astype(np.uint8)).save(path, quality=92)
    return path


def _astronaut() -> Image.Image:
    with Image.open(PICTURES / "astronaut.webp") as picture:
        return picture.convert("RGB")


def measure(arguments: argparse.Namespace) -> JsonDict:
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        paths = gathered(arguments.images, scratch / "images", arguments.files)
        large = make_large(scratch / "large.jpg")
        return {
            "model": arguments.model,
            "files": len(paths),
            "workers": arguments.workers,
            **throughput(scratch / "images", len(paths), arguments),
            "milliseconds": split(paths[:SPLIT], arguments.model, scratch),
            "large_jpeg_ms": large_jpeg(large, arguments.model),
            **starts(),
            "times_faster_than_vit": times_faster(scratch),
            "load_before": arguments.load,
        }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, help="a folder of images, LFW's if you have it")
    parser.add_argument("--files", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--model", default="ring.coil100")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    arguments = parser.parse_args(argv)
    arguments.load = os.getloadavg()[0]  # above zero: other load, the times are too long
    result = measure(arguments)
    missed = [
        name
        for name, (bar, side) in BARS.items()
        if (result[name] < bar if side == "at least" else result[name] > bar)
    ]
    faster = result["times_faster_than_vit"]
    missed += [name for name, times in faster.items() if times < TIMES_FASTER[name]]
    if arguments.json:
        print(json.dumps({**result, "missed": missed}))
    else:
        _print_table(result, missed)
    return 1 if missed else 0


def _print_table(result: JsonDict, missed: list[str]) -> None:
    print(f"{result['files']} files, {result['workers']} workers, {result['model']}")
    for name, (bar, side) in BARS.items():
        verdict = "MISSED" if name in missed else "met"
        print(f"{name:<18}{result[name]:>9.2f}   {side} {bar}: {verdict}")
    for name, times in result["times_faster_than_vit"].items():
        verdict = "MISSED" if name in missed else "met"
        goal = f"at least {TIMES_FASTER[name]}: {verdict}"
        print(f"{name:<18}{times:>9.2f}   times faster than a ViT-S/14, {goal}")
    for part, value in result["milliseconds"].items():
        print(f"{part:<18}{value:>9.2f} ms of CPU time per image, one thread")
    print(f"{'processor':<18}{result['cpu_ms_an_image']:>9.2f} ms per image, the whole command")
    print(f"load before: {result['load_before']:.1f}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
