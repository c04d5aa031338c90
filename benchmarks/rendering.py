"""What share of the ring's training step goes into rendering its views.

    python benchmarks/rendering.py [--batch 512]

57 px views of 128 px parents, all augmentation of the recipe on. On a GPU the step and the
rendering alone are each captured as a CUDA graph and replayed, as in training; on a CPU both run
as they are. Medians of many repetitions in one run. Exits 1 above 15 % (GPU) or 30 % (CPU).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from radialbeams.nn.bic import build
from radialbeams.training.augment import COLUMNS
from radialbeams.training.recipe import Recipe
from radialbeams.training.step import Batch, Step, make_step
from radialbeams.training.views import make_views
from radialbeams.training.weights import pick_device

RECIPE = Path(__file__).parent.parent / "recipes" / "ring.coil100.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    device = pick_device()
    gpu = device.type == "cuda"
    size = arguments.batch or (512 if gpu else 128)
    recipe = Recipe.from_dict(json.loads(RECIPE.read_text(encoding="utf-8")))
    torch.manual_seed(0)
    parents = torch.randint(0, 256, (2000, 3, 128, 128), dtype=torch.uint8).to(device)
    model = build(recipe.model).to(device)
    if gpu:
        model.to(memory_format=torch.channels_last)
    rate = torch.tensor(1e-3, device=device) if gpu else 1e-3
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, fused=gpu, capturable=gpu)
    views = make_views(recipe.protocol, view_size=recipe.model.view_size)
    step = Step(recipe, parents, views, model.train(), optimizer)
    batch = Batch(
        torch.randint(len(parents), (size,), device=device),
        torch.rand(size, device=device) * 6.28,
        torch.rand(size, COLUMNS, device=device),
    )
    whole = make_step(step, batch)
    render = captured(lambda: step.render(batch)) if gpu else (lambda: step.render(batch))
    times = interleaved([render, lambda: whole(batch, 1)], arguments.rounds)
    share = times[0] / times[1]
    print(
        json.dumps(
            {
                "render_ms": round(times[0] * 1e3, 3),
                "step_ms": round(times[1] * 1e3, 3),
                "share": round(share, 3),
                "batch": size,
                "hardware": device.type,
                "threads": torch.get_num_threads(),
            }
        )
    )
    return 0 if share <= (0.15 if gpu else 0.30) else 1


def captured(work: Callable[[], object]) -> Callable[[], object]:
    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def interleaved(jobs: list[Callable[[], object]], rounds: int) -> list[float]:
    """The median seconds of each job, measured in turn so that noise hits all alike."""
    times: list[list[float]] = [[] for _ in jobs]
    for number in range(rounds + 3):
        for job, spent in zip(jobs, times, strict=True):
            started = _now()
            job()
            if number >= 3:
                spent.append(_now() - started)
    return [statistics.median(spent) for spent in times]


def _now() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    sys.exit(main())
