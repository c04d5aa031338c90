"""The time of a training step of the ring by parts: rendering the views, forward, backward.

    python benchmarks/rendering.py [--recipe recipes/ring.coil100.json] [--batch 512]

Views of random parents with the full augmentation of the recipe. On a GPU the step and its parts
are each captured as a CUDA graph and replayed, as in training; on a CPU they run eagerly. Medians
of many repetitions in one run. Exits 1 if rendering takes more than 15% (GPU) or 30% (CPU) of the
step.
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

from radialbeams.nn.architectures import build
from radialbeams.training.augment import COLUMNS
from radialbeams.training.recipe import Recipe
from radialbeams.training.step import Batch, Step, make_step
from radialbeams.training.views import make_views
from radialbeams.training.weights import pick_device

RECIPE = Path(__file__).parent.parent / "recipes" / "ring.coil100.json"
PARENTS = 2000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", type=Path, default=RECIPE)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    device = pick_device()
    gpu = device.type == "cuda"
    size = arguments.batch or (512 if gpu else 128)
    recipe = Recipe.from_dict(json.loads(arguments.recipe.read_text(encoding="utf-8")))
    step, batch = step_and_batch(recipe, size, device)

    def forward() -> None:
        parents, views = step.render(batch)
        with torch.autocast("cuda", torch.bfloat16, enabled=gpu, cache_enabled=False):
            step.losses(parents, views, batch)

    whole = make_step(step, batch)
    parts: list[Callable[[], object]] = [lambda: step.render(batch), forward]
    if gpu:
        parts = [captured(part) for part in parts]
    rendered, forwarded, stepped = interleaved([*parts, lambda: whole(batch, 1)], arguments.rounds)
    share = rendered / stepped
    report = {
        "recipe": arguments.recipe.stem,
        "render_ms": round(rendered * 1e3, 3),
        "forward_ms": round((forwarded - rendered) * 1e3, 3),
        "backward_and_update_ms": round((stepped - forwarded) * 1e3, 3),
        "step_ms": round(stepped * 1e3, 3),
        "share": round(share, 3),
        "views_per_second": round(size / stepped),
        "batch": size,
        "view_size": recipe.model.view_size,
        "parameters": sum(weight.numel() for weight in step.model.parameters()),
        "hardware": device.type,
        "threads": torch.get_num_threads(),
    }
    print(json.dumps(report))
    return 0 if share <= (0.15 if gpu else 0.30) else 1


def step_and_batch(recipe: Recipe, size: int, device: torch.device) -> tuple[Step, Batch]:
    """The recipe's step on random parents, and one batch for it."""
    gpu = device.type == "cuda"
    torch.manual_seed(0)
    shape = (PARENTS, recipe.model.channels, recipe.parent_size, recipe.parent_size)
    parents = torch.randint(0, 256, shape, dtype=torch.uint8).to(device)
    model = build(recipe.model).to(device)
    if gpu:
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    rate = torch.tensor(1e-3, device=device) if gpu else 1e-3
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, fused=gpu, capturable=gpu)
    views = make_views(recipe.protocol, view_size=recipe.model.view_size)
    batch = Batch(
        torch.randint(PARENTS, (size,), device=device),
        torch.rand(size, device=device) * 6.28,
        torch.rand(size, COLUMNS, device=device),
    )
    return Step(recipe, parents, views, model.train(), optimizer), batch


def captured(work: Callable[[], object]) -> Callable[[], object]:
    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def interleaved(jobs: list[Callable[[], object]], rounds: int) -> list[float]:
    """The median seconds of each job, measured alternately, so that load affects all."""
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
