"""The cost of the canonicaliser in front of a classifier, as a share of the classifier's time.

    python benchmarks/overhead.py [--out results/speed/overhead.json] [--json]

The classifier is EfficientNet-Lite0 at 224 px with its weights. Both are torch modules in the
memory layout that is fastest for them (channels last), on one CPU thread and, if there is one, on a
GPU. `for_inference()` prepares the canonicaliser: it is folded, and on a GPU its network has half
precision. Classifier and canonicaliser run alternately, so that other load slows both; the shares
are of their medians, on the CPU in CPU time. On a GPU, further variants are measured: the
canonicaliser as loaded, classifier and images in half precision, both compiled, and both of these.
All are captured as CUDA graphs; otherwise a GPU mostly waits for small kernels to be launched.

Goals: on one CPU thread in batches of 4, 20% with `ring.coil100` and 60% with `ring`; on a GPU in
batches of 64, 15% with either. Exits 1 if a goal is missed. Batches of 1, the other variants on a
GPU, and both networks as one ONNX file are reported without a goal.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from radialbeams.front.classifiers import efficientnet_lite0
from radialbeams.front.module import Canonicalizer
from radialbeams.stored import JsonDict

SIZE = 224
MODELS = ("ring.coil100", "ring")
CPU_BARS = {"ring.coil100": 0.20, "ring": 0.60}
GPU_BAR = 0.15
CPU_BATCH, GPU_BATCH = 4, 64
ROUNDS = {1: 40, CPU_BATCH: 12, GPU_BATCH: 60}


class Way(NamedTuple):
    """How classifier and canonicaliser are run."""

    ready: bool = True  # the canonicaliser by `for_inference`
    half: bool = False  # the classifier and the images
    compiled: bool = False


ON_A_GPU = {  # the goal is for the first
    "gpu": Way(),
    "gpu_as_loaded": Way(ready=False),
    "gpu_half": Way(half=True),
    "gpu_compiled": Way(compiled=True),
    "gpu_compiled_half": Way(half=True, compiled=True),
}

Call = Callable[[], object]


def in_turns(calls: dict[str, Call], rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    """Median seconds of each, round by round."""
    for call in calls.values():
        call()
        call()
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            started = clock()
            call()
            spent[name].append(clock() - started)
    return {name: statistics.median(times) for name, times in spent.items()}


def shares(seconds: dict[str, float], batch: int) -> JsonDict:
    own = seconds["classifier"]
    return {
        "batch": batch,
        "classifier_ms": round(1e3 * own / batch, 3),
        **{
            name: {
                "ms": round(1e3 * spent / batch, 3),
                "share": round(spent / own, 4),
            }
            for name, spent in seconds.items()
            if name != "classifier"
        },
    }


def calls_of(device: torch.device, batch: int, way: Way) -> dict[str, Call]:
    """The classifier alone, and each canonicaliser with its rotation alone."""
    classifier = efficientnet_lite0().to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    images = torch.rand(batch, 3, SIZE, SIZE, device=device)
    if way.half:
        classifier, images = classifier.half(), images.half()
    laid_out = images.to(memory_format=torch.channels_last)
    modules: dict[str, tuple[nn.Module, Tensor]] = {"classifier": (classifier, laid_out)}
    modules |= {name: (front(name, device, way), images) for name in MODELS}
    return {
        name: partial(torch.compile(module) if way.compiled else module, example)
        for name, (module, example) in modules.items()
    }


def front(name: str, device: torch.device, way: Way) -> nn.Module:
    canonicalizer = Canonicalizer.from_pretrained(name, abstain=None, snap="none", returns="image")
    if way.ready:
        canonicalizer = canonicalizer.for_inference(
            torch.float16 if device.type == "cuda" else torch.float32
        )
    return canonicalizer.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


@torch.inference_mode()
def on_the_cpu(batch: int) -> JsonDict:
    calls = calls_of(torch.device("cpu"), batch, Way())
    return shares(in_turns(calls, ROUNDS[batch], time.thread_time), batch)


# --- on a GPU ---


def awaited(call: Call) -> Call:
    def run() -> None:
        call()
        torch.cuda.synchronize()

    return run


def captured(call: Call) -> Call:
    """The kernels of one call, launched as one graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()

    def replay(_alive: Call = call) -> None:  # keeps weights and images alive
        graph.replay()

    return replay


@torch.inference_mode()
def graphs_of(way: Way, batch: int) -> dict[str, Call]:
    """The same calls as graphs."""
    calls = calls_of(torch.device("cuda"), batch, way)
    return {name: awaited(captured(call)) for name, call in calls.items()}


def on_a_gpu(batches: tuple[int, ...]) -> JsonDict:
    """The times of each variant; everything is compiled before anything is measured."""
    ways = [(name, batch) for batch in batches for name in ON_A_GPU]
    graphs = {(name, batch): graphs_of(ON_A_GPU[name], batch) for name, batch in ways}
    results = {}
    for (name, batch), calls in graphs.items():
        row = name if batch == GPU_BATCH else f"{name}_batch_{batch}"
        results[row] = shares(in_turns(calls, ROUNDS[GPU_BATCH], time.perf_counter), batch)
    return results


# --- as ONNX files ---


def as_onnx(batches: tuple[int, ...]) -> JsonDict:
    """The time of one ONNX file with both minus that of the classifier alone."""
    from radialbeams.front.pipeline import export_pipeline
    from radialbeams.training.export import write_onnx

    classifier, example = efficientnet_lite0(), torch.rand(2, 3, SIZE, SIZE)
    with tempfile.TemporaryDirectory() as folder:
        alone = Path(folder) / "classifier.onnx"
        write_onnx(classifier, example[:1], alone, "images", ("output",))
        sessions = {"classifier": session(alone)}
        for name in MODELS:
            path = Path(folder) / f"{name}.onnx"
            front = Canonicalizer.from_pretrained(name, abstain=None, snap="none")
            export_pipeline(front, classifier, path, example)
            sessions[name] = session(path)
    results = {}
    for batch in batches:
        images = torch.rand(batch, 3, SIZE, SIZE)
        calls: dict[str, Call] = {name: partial(run, images) for name, run in sessions.items()}
        seconds = in_turns(calls, ROUNDS[batch], time.thread_time)
        own = seconds["classifier"]
        seconds |= {name: seconds[name] - own for name in MODELS}
        results[f"batch_{batch}"] = shares(seconds, batch)
    return results


def session(path: Path) -> Callable[[Tensor], object]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda images: model.run(["output"], {"images": images.numpy()})


# --- all of it ---


def missed(results: JsonDict) -> list[str]:
    """A sentence for every goal that is missed."""
    bars = [("cpu", name, bar) for name, bar in CPU_BARS.items()]
    bars += [("gpu", name, GPU_BAR) for name in MODELS]
    return [
        f"{name} takes {share:.0%} of the classifier's time on the {place}; at most {bar:.0%}"
        for place, name, bar in bars
        if place in results and (share := results[place][name]["share"]) > bar
    ]


def measure(with_onnx: bool) -> JsonDict:
    torch.set_num_threads(1)
    results: JsonDict = {"cpu": on_the_cpu(CPU_BATCH), "cpu_batch_1": on_the_cpu(1)}
    if with_onnx:
        results["onnx"] = as_onnx((1, CPU_BATCH))
    if torch.cuda.is_available():
        results |= on_a_gpu((GPU_BATCH, 1))
    return results


def table(results: JsonDict) -> str:
    rows = {**results, **{f"onnx {k}": v for k, v in results.get("onnx", {}).items()}}
    lines = [f"{'':28}{'classifier':>12}" + "".join(f"{name:>24}" for name in MODELS)]
    for place, row in rows.items():
        if place != "onnx":
            cells = [f"{row[n]['ms']:.2f} ms = {row[n]['share']:.0%}" for n in MODELS]
            lines.append(
                f"{place:28}{row['classifier_ms']:9.2f} ms" + "".join(f"{c:>24}" for c in cells)
            )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-onnx", action="store_true", help="without the ONNX files")
    arguments = parser.parse_args()
    results = measure(not arguments.no_onnx)
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results) if arguments.json else table(results))
    for line in missed(results):
        print(line, file=sys.stderr)
    return 1 if missed(results) else 0


if __name__ == "__main__":
    sys.exit(main())
