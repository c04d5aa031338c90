"""How cost grows: with views, image size and threads, and with the number of files in a run.

The files of a run are empty: what is measured is the plan, the journal, and how long a killed run
takes until it works again. Nine tenths of its files count as done before.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.clock import compared, in_turns
from radialbeams.batch import JobSettings, Outcome, Plan
from radialbeams.batch.plan import BATCH
from radialbeams.batch.run import _begun, _journal
from radialbeams.canonicalizer import Canonicalizer
from radialbeams.stored import JsonDict

MODEL = "ring.coil100"
FILES = (100, 1_000, 10_000, 100_000)
SIDES = (128, 256, 512, 1024)
REFINES = (1, 2, 4, 8)
FOLDER = 1_000  # files in each
DONE = 0.9
MOST_MEMORY, MOST_RESUME = 300, 10.0  # megabytes, seconds


def measure(quick: bool) -> JsonDict:
    counts = FILES[:2] if quick else FILES
    return {
        "looks": _looks(),
        "image side": _sides(),
        "threads": _threads(),
        **{f"{count:,} files": _in_a_process(count) for count in counts},
    }


def _picture(side: int) -> Any:
    return np.random.default_rng(0).integers(0, 256, (side, side, 3), dtype=np.uint8)


def _looks() -> JsonDict:
    image = Image.fromarray(_picture(250))
    models = {str(k): Canonicalizer(MODEL, threads=1, refine=k) for k in REFINES}
    calls = {name: lambda model=model: model.answers([image]) for name, model in models.items()}
    return compared(in_turns(calls, 7, time.thread_time), "1")


def _sides() -> JsonDict:
    model = Canonicalizer(MODEL, threads=1)
    images = {str(side): Image.fromarray(_picture(side)) for side in SIDES}
    calls = {name: lambda image=image: model.answers([image]) for name, image in images.items()}
    return compared(in_turns(calls, 7, time.thread_time), str(SIDES[0]))


def _threads() -> JsonDict:
    views = np.random.default_rng(0).random((32, 3, 57, 57), dtype=np.float32)
    models = {str(k): Canonicalizer(MODEL, threads=k) for k in (1, 2)}
    calls = {n: lambda model=model: model.answers_from_views(views) for n, model in models.items()}
    return compared(in_turns(calls, 7), "1", len(views))


# --- the number of files ---


def _in_a_process(count: int) -> JsonDict:
    """The figures of a run in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, "-m", "benchmarks.scaling", str(count)]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: JsonDict = numbers_of(process.stdout)
    return figures


def numbers_of(line: str) -> JsonDict:
    pairs = (pair.split("=") for pair in line.split())
    return {name: float(value) for name, value in pairs}


def killed_run(count: int) -> dict[str, float]:
    """Seconds of each part for a run of `count` files, and megabytes of this process."""
    with tempfile.TemporaryDirectory() as name:
        source, out = Path(name) / "in", Path(name) / "out"
        for number in range(count):
            place = source / f"{number // FOLDER}" / f"{number}.jpg"
            if number % FOLDER == 0:
                place.parent.mkdir(parents=True)
            place.touch()
        job = JobSettings(MODEL, turns=True, writes=True)
        plan = Plan((str(source),), folder=out)
        started = time.perf_counter()
        for _ in plan.items():
            pass
        scanned = time.perf_counter()
        _leave_unfinished(job, plan, int(DONE * count))
        noted = time.perf_counter()
        resumed, computed = _resume(job, plan)
    return {
        "scan_s": scanned - started,
        "journal_s": noted - scanned,
        "resume_s": resumed,
        "resume_cpu_s": computed,  # the time on an idle machine, or less
        "megabytes": _peak_megabytes(),
    }


def _peak_megabytes() -> float:
    """The peak of this process; that of `getrusage` would include the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def _leave_unfinished(job: JobSettings, plan: Plan, done: int) -> None:
    journal = _journal(job, plan, fresh=False)
    journal.fix_plan(plan.items())
    for number, batch in journal.batches():
        if number * BATCH >= done:
            break
        journal.record([Outcome(item.path, item.out, action="exists") for item in batch])
    journal.close()


def _resume(job: JobSettings, plan: Plan) -> tuple[float, float]:
    """Wall-clock and CPU seconds until the first outcome that is new."""
    started, computed = time.perf_counter(), time.process_time()
    journal = _journal(job, plan, fresh=False)
    run = _begun(job, plan, 1, journal)
    for number, _ in enumerate(run.outcomes):
        if number >= run.done_before:
            break
    spent = time.perf_counter() - started, time.process_time() - computed
    run.outcomes.close()
    journal.close()
    return spent


if __name__ == "__main__":
    figures = killed_run(int(sys.argv[1]))
    print(" ".join(f"{name}={value:.3f}" for name, value in figures.items()))
