"""The time of one training step on the CPU by parts, and the memory that a short run needs.

The step is the paper's for COIL-100: a batch of 128 RGB images of 128 px, padded to 182 px and
rotated, |B| = 32 beams of D = 64, circle loss, AdamW. The parts run one after the other as in
training and are timed separately; the medians over several steps after a warm-up are printed. The
images are random bytes, because no part's time depends on the content.

`--memory` instead trains for 20 steps on COIL-100 (from --data, default: RADIALBEAMS_DATA) in a
separate process and prints its peak resident size; exits 1 above 4 GiB.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from radialbeams.nn.angles import TURN, circle_loss
from radialbeams.nn.bic import BIC, BICConfig
from radialbeams.stored import JsonDict
from radialbeams.training.data import load
from radialbeams.training.fit import Fit
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import PaperViews

SIZE = 128
MOST_BYTES = 4 * 2**30


class Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}
        self.restart()

    def restart(self) -> None:
        self._last = time.perf_counter()

    def stop(self, part: str) -> None:
        """Adds the time since the last call to `part`."""
        now = time.perf_counter()
        self.seconds.setdefault(part, []).append(now - self._last)
        self._last = now


def measure(batch: int, steps: int, warm_up: int) -> dict[str, float]:
    """Median seconds of each part."""
    torch.manual_seed(0)
    model = BIC(BICConfig.for_images(SIZE)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0)
    parents = torch.randint(0, 256, (batch, 3, SIZE, SIZE), dtype=torch.uint8)
    views = PaperViews()
    clock = Clock()
    for _ in range(warm_up + steps):
        angles = TURN * torch.rand(batch)
        clock.restart()
        rendered = views.render(parents, angles)
        clock.stop("rendering")
        beams = model.beams(rendered)
        clock.stop("beams")
        embeddings = model.encoder(beams)
        clock.stop("encoder")
        context = model.context(embeddings)
        clock.stop("context")
        loss = circle_loss(angles, model.decoder(context)).mean()
        clock.stop("decoder")
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        clock.stop("backward")
        optimizer.step()
        clock.stop("optimizer")
    return {part: statistics.median(times[warm_up:]) for part, times in clock.seconds.items()}


def print_step(arguments: argparse.Namespace) -> int:
    seconds = measure(arguments.batch, arguments.steps, arguments.warm_up)
    total, threads = sum(seconds.values()), torch.get_num_threads()
    if arguments.json:
        parts = {part: 1000 * value for part, value in seconds.items()}
        setting = {"batch": arguments.batch, "threads": threads}
        print(json.dumps({**setting, "milliseconds": parts, "total": 1000 * total}))
        return 0
    print(f"batch {arguments.batch}, {threads} threads")
    for part, value in [*seconds.items(), ("step", total)]:
        print(f"{part:10} {1000 * value:8.1f} ms {value / total:6.1%}")
    return 0


def short_run(data: Path | None, steps: int) -> JsonDict:
    """Trains, and prints the peak memory of this process."""
    recipe = Recipe(data="coil100", model=BICConfig.for_images(SIZE), steps=steps)
    images = load("coil100", root=data, split="train")
    with tempfile.TemporaryDirectory() as folder:
        Fit(recipe, images, Path(folder) / "run", device=torch.device("cpu")).run()
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024
    return {"images": len(images), "steps": steps, "peak_bytes": largest * unit}


def print_memory(arguments: argparse.Namespace) -> int:
    command = [sys.executable, __file__, "--short-run", "--steps", str(arguments.steps)]
    command += ["--data", str(arguments.data)] if arguments.data else []
    command += ["--threads", str(arguments.threads)] if arguments.threads else []
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if child.returncode:
        return child.returncode
    result = json.loads(child.stdout)
    peak = result["peak_bytes"]
    if arguments.json:
        print(json.dumps(result))
    else:
        print(f"{result['steps']} steps on {result['images']} images of COIL-100")
        print(f"peak memory {peak / 2**30:.2f} GiB")
    if peak > MOST_BYTES:
        print(f"The run needed more than {MOST_BYTES / 2**30:.0f} GiB.", file=sys.stderr)
        return 1
    return 0


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, help="10 to measure time, 20 to measure memory")
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--threads", type=int, help="threads of torch. Default: its own choice")
    parser.add_argument("--memory", action="store_true", help="measure memory, not time")
    parser.add_argument("--data", type=Path, help="the folder that holds COIL-100")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--short-run", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    arguments.steps = arguments.steps or (20 if arguments.memory else 10)
    if arguments.short_run:
        print(json.dumps(short_run(arguments.data, arguments.steps)))
        return 0
    return print_memory(arguments) if arguments.memory else print_step(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
