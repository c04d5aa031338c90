"""Hostile recipes, weights, checkpoints and data sets, given to the verbs that need torch."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

from .bench import Bench, Case, Family
from .command import environment
from .gallery import make_pictures, picture

EACH = 10  # hostile inputs that one case holds
LIMIT = 600.0  # seconds for one process, several of its inputs included
_making = Lock()


def check(case: Case) -> None:
    """One process meets the inputs in turn; it prints a line before and after each."""
    if find_spec("torch") is None:
        case.skip("torch is not installed")
        return
    case.tried = EACH
    base = _base(case.bench)
    first, last = case.number * EACH, (case.number + 1) * EACH
    while first < last:
        lines, ended = _child(case, base, first, last)
        for line in lines:
            if "kind" in line:
                case.found(str(line["kind"]), f"input {line['number']}, {line['text']}")
        if ended:
            return
        reached = max((int(str(line["at"])) for line in lines if "at" in line), default=first)
        label = next((line["label"] for line in lines if line.get("at") == reached), "?")
        case.found("traceback", f"input {reached}, {label}: it ended the process")
        first = reached + 1


def _child(case: Case, base: Path, first: int, last: int) -> tuple[list[dict[str, object]], bool]:
    package = __package__ or "tests.probe"
    root = Path(__file__).parents[len(package.split("."))]
    argv = [sys.executable, "-m", f"{package}.training_child", str(base), str(case.folder)]
    argv += [str(first), str(last), str(case.bench.seed)]
    try:
        done = subprocess.run(
            argv, cwd=root, env=environment(), capture_output=True, text=True, timeout=LIMIT
        )
        output, code = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late:
        output, code = (late.stdout or b"").decode(), 1
        case.found("hang", "the process did not end")
    lines = [json.loads(line) for line in output.splitlines() if line.startswith('{"')]
    return lines, code == 0


def _base(bench: Bench) -> Path:
    """A folder of pictures and a run that was trained on them, for all cases."""
    place = bench.folder / "trained"
    with _making:
        if not place.exists():
            rng = random.Random(bench.seed)
            make_pictures(place / "mine", 14, rng)
            for number in range(14):
                picture(rng).save(place / "mine" / f"more-{number}.png")
            words = ["train", "mine", "--out", "run", "--size", "28", "--num-beams", "8"]
            words += ["--steps", "2", "--batch", "4", "--devices", "cpu"]
            done = bench.command.run(*words, cwd=place, limit=300)
            if done.code != 0:
                raise RuntimeError(f"training fails undisturbed: {done.message[-500:]}")
    return place


FAMILY = Family(
    "training", "hostile recipes, weights, checkpoints, data sets", check, cases=100, each=EACH
)
