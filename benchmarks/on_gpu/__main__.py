"""All measurements on a GPU, from the root of the repository.

    python -m benchmarks.on_gpu OUT [--seconds 145] [--only TEXT …] [--uncompiled] [--tiny]

It needs torch, numpy, Pillow and safetensors, and neither data nor a network. Each part is a
process of its own and writes OUT/PART.json as it goes. All parts compile at the same time; then
they are measured one after the other, so that none disturbs another. A part that fails or takes
too long leaves what it has; the others go on. OUT/summary.json has all results and the bars that
are missed. `--uncompiled` compiles nothing but the classifier. `--tiny` is a trial of a minute on
a CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch

from radialbeams.stored import JsonDict

COMPILING = 0.6  # of the time; then the parts that are ready are measured
LIMITS = {"training": 25.0, "inference": 45.0, "variants": 30.0}  # seconds to measure one part
LIMIT = 15.0
SLOW = 20  # times as long on a CPU


class Part(Protocol):
    def prepare(self) -> None: ...

    def measure(self) -> Any: ...


def parts(tiny: bool, compiles: bool = True) -> dict[str, Callable[[], Part]]:
    """The parts by name, in the order in which they are measured."""
    from benchmarks.on_gpu.front import Front
    from benchmarks.on_gpu.inference import BATCHES, Inference
    from benchmarks.on_gpu.models import MODELS
    from benchmarks.on_gpu.sampling import BATCHES as SAMPLED
    from benchmarks.on_gpu.sampling import Sampling
    from benchmarks.on_gpu.training import Training

    batches = (1, 2) if tiny else BATCHES
    size = {"batch": 2} if tiny else {}
    few = {"images": 8, "batch": 4} if tiny else {}
    factories: dict[str, Callable[[], Part]] = {
        "front-half-compiled": lambda: Front("half", True, **size, compiles=compiles),
        "front-half": lambda: Front("half", False, **size),
    }
    for model in MODELS:
        factories[f"inference-{model}-half"] = lambda m=model: Inference(
            m, "half", batches, compiles=compiles
        )
    factories |= {
        "training-ring.coil100": lambda: Training("ring.coil100", **few),
        "training-general": lambda: Training("general", **few),
        "sampling": lambda: Sampling((2,) if tiny else SAMPLED),
    }
    for model in MODELS:
        factories[f"inference-{model}-float"] = lambda m=model: Inference(
            m, "float", batches, compiles=compiles
        )
    factories |= {
        "front-float": lambda: Front("float", False, **size),
        "variants": lambda: _variants(tiny),
    }
    return factories


def _variants(tiny: bool) -> Part:
    from benchmarks.on_gpu.variants import Variants  # it needs Triton

    return Variants((2,), (150,)) if tiny else Variants()


# --- one part ---


def run_part(name: str, out: Path, tiny: bool, compiles: bool) -> int:
    from benchmarks.on_gpu.timing import give_back

    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True  # as convolutions may
    torch.manual_seed(0)
    part = parts(tiny, compiles)[name]()
    started = time.monotonic()
    part.prepare()
    give_back()
    prepared = round(time.monotonic() - started, 1)
    (out / f"{name}.ready").touch()
    while not (out / f"{name}.go").exists():
        time.sleep(0.05)
    started = time.monotonic()
    for results in part.measure():
        spent = round(time.monotonic() - started, 1)
        record = {"prepared_s": prepared, "measured_s": spent, **results}
        half = out / f"{name}.json.new"
        half.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        half.replace(out / f"{name}.json")
    return 0


# --- all parts ---


class Running(NamedTuple):
    name: str
    process: subprocess.Popen[bytes]


def run_all(out: Path, seconds: float, only: list[str], tiny: bool, compiles: bool) -> int:
    out.mkdir(parents=True, exist_ok=True)
    names = [name for name in parts(tiny) if any(text in name for text in only)]
    for name in names:
        for ending in ("ready", "go", "json"):
            (out / f"{name}.{ending}").unlink(missing_ok=True)
    started = time.monotonic()
    options = ["--tiny"] * tiny + ["--uncompiled"] * (not compiles)
    running = [Running(name, _start(name, out, options)) for name in names]
    try:
        _measured(running, out, started, seconds)
    finally:
        for part in running:
            _stop(part)
    summary = summarised(names, out)
    summary["seconds"] = round(time.monotonic() - started, 1)
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    for line in summary["missed"] + [f"no result of {name}" for name in summary["without_result"]]:
        print(f"MISSED: {line}")
    return 1 if summary["missed"] or summary["without_result"] else 0


def _start(name: str, out: Path, options: list[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "benchmarks.on_gpu", str(out), "--part", name]
    shared = {
        "TORCHINDUCTOR_CACHE_DIR": str((out / "cache").resolve()),
        "TORCHINDUCTOR_COMPILE_THREADS": "3",
        "OMP_NUM_THREADS": "2",
    }
    with (out / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            command + options,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=shared | os.environ,
            start_new_session=True,
        )


def _measured(running: list[Running], out: Path, started: float, seconds: float) -> None:
    """Lets the parts measure in turn: first those that are ready, then the late ones.

    Meanwhile late ones are stopped, because what they try out on the GPU would disturb the others.
    """
    waiting = list(running)
    while waiting and time.monotonic() - started < COMPILING * seconds:
        if all(_is_ready(part, out) or part.process.poll() is not None for part in waiting):
            break
        time.sleep(0.1)
    while waiting and time.monotonic() - started < seconds:
        waiting = [part for part in waiting if part.process.poll() is None]
        ready = next((part for part in waiting if _is_ready(part, out)), None)
        if ready is None:
            time.sleep(0.1)
            continue
        waiting.remove(ready)
        late = [part for part in waiting if not _is_ready(part, out)]
        _signalled(late, signal.SIGSTOP)
        (out / f"{ready.name}.go").touch()
        left = started + seconds - time.monotonic()
        usual = LIMITS.get(ready.name.split("-")[0], LIMIT)
        limit = min(usual if torch.cuda.is_available() else SLOW * usual, left)
        print(f"{time.monotonic() - started:5.0f} s  measuring {ready.name}", flush=True)
        try:
            ready.process.wait(limit)
        except subprocess.TimeoutExpired:
            _stop(ready)
        if not any(_is_ready(part, out) for part in waiting):
            _signalled(late, signal.SIGCONT)


def _signalled(stopped: list[Running], number: signal.Signals) -> None:
    for part in stopped:
        if part.process.poll() is None:
            os.killpg(part.process.pid, number)


def _is_ready(part: Running, out: Path) -> bool:
    return (out / f"{part.name}.ready").exists()


def _stop(part: Running) -> None:
    """Ends a part and the compilers that it has started."""
    if part.process.poll() is None:
        os.killpg(part.process.pid, signal.SIGKILL)
        part.process.wait()


# --- results ---


def summarised(names: list[str], out: Path) -> JsonDict:
    results = {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name in names
        if (path := out / f"{name}.json").exists()
    }
    missing = [name for name in names if name not in results]
    for record in results.values():
        record.pop("kernels", None)  # they are in the file of the part
    return {"missed": missed(results), "without_result": missing, **results}


def missed(results: JsonDict) -> list[str]:
    """A sentence for every bar that is missed."""
    from benchmarks.on_gpu import front, inference, sampling

    lines = []
    shares = results.get("front-half-compiled", {}).get("share", {})
    for model, most in front.MOST.items():
        forms = [shares[name] for name in (model, model + front.PLAIN) if name in shares]
        if forms and (share := min(forms)) > most:
            lines.append(f"{model} takes {share:.1%} of the classifier; at most {most:.0%}")
    for name, group in results.get("sampling", {}).items():
        if isinstance(group, dict) and (times := group["ratio"]["gather"]) > sampling.MOST:
            lines.append(f"beams, {name}: {times:g} copies; at most {sampling.MOST}")
    for name, record in results.items():
        if not name.startswith("inference"):
            continue
        largest = record.get(f"batch {inference.BATCHES[-1]}", {})
        times = min((form["times_floor"] for form in _timed(largest)), default=0)
        if largest and times > inference.MOST_FLOORS:
            lines.append(f"{name}: {times:g} floors; at most {inference.MOST_FLOORS}")
        single = record.get("batch 1", {})
        if record.get("model") == "ring.coil100":
            forms = [form["until_answer_us"] for form in _timed(single)]
            if forms and min(forms) > inference.MOST_US:
                lines.append(f"{name}: {min(forms):g} µs for one view; at most {inference.MOST_US}")
    return lines


def _timed(row: JsonDict) -> list[JsonDict]:
    """The forms of a network that were timed for a batch."""
    return [form for form in row.values() if isinstance(form, dict)]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=145, help="for everything (default: 145)")
    parser.add_argument("--tiny", action="store_true", help="smallest sizes, to try it on a CPU")
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="parts whose names have such a text"
    )
    parser.add_argument(
        "--uncompiled", action="store_true", help="compile nothing but the classifier"
    )
    parser.add_argument("--part", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    compiles = not given.uncompiled
    if given.part:
        return run_part(given.part, given.out, given.tiny, compiles)
    return run_all(given.out, given.seconds, given.only, given.tiny, compiles)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
