"""The full grid of canaries: a JSON file for every protocol, network and noise.

    python studies/leaks.py --out results/leaks [--only leakfree] [--views 600000]
    python studies/leaks.py --out results/leaks --small --batch 64     # hours on a CPU
    python studies/leaks.py --out results/leaks --parent 192 --view 192 --sigma 1.0 1.1 1.25

`--small` uses the smaller networks and parents of `radialbeams leaks --quick`.

Needs only torch. A combination whose file exists is skipped, so a killed grid can be resumed, and
several processes can share it: each claims a combination with a lock that ends with the process.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from radialbeams.files import claimed, write_whole
from radialbeams.nn.rotation import REACH, largest_view, render
from radialbeams.training.leaks import CANARIES, FULL, QUICK, Render, Rendering, measure_leak
from radialbeams.training.noise import JPEG_NOISES, NOISES, Noise
from radialbeams.training.views import LeakfreeViews
from radialbeams.training.weights import pick_device

SMALL_PARENTS = (28, 32)


def gaussian(parents: Tensor, angles: Tensor) -> Tensor:
    """A Gaussian blur of one pixel, then bicubic resampling: nearly leak-free, but not quite.

    The bicubic kernel is weaker along the axes than along the diagonals. `leakfree` corrects for
    that; this rendering does not.
    """
    size = parents.shape[-1]
    index = torch.arange(size, device=parents.device)
    weights = torch.exp(-((index[:, None] - index) ** 2) / 2)
    kernel = weights / weights.sum(1, keepdim=True)
    return render(kernel @ (parents.float() / 255) @ kernel.mT, angles, largest_view(size))


WAYS: dict[str, Rendering | Render] = {"gaussian": gaussian}
GRID: list[tuple[str, str, Noise, int]] = [
    *(("leakfree", canary, noise, 128) for noise in NOISES for canary in CANARIES),
    *(("bilinear", canary, "white", 128) for canary in CANARIES),
    *(("gaussian", canary, "white", 128) for canary in CANARIES),
    *(("leakfree", canary, noise, 128) for noise in JPEG_NOISES for canary in CANARIES),
    *(("leakfree", canary, "white", parent) for parent in SMALL_PARENTS for canary in CANARIES),
    ("paper", "ring", "white", 128),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", help="one protocol: leakfree, bilinear or paper")
    parser.add_argument("--views", type=int, default=600_000)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--canary", help="ring or cnn")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--sigma", type=float, nargs="*", help="blurs to measure, parent pixels")
    parser.add_argument("--parent", type=int, default=192, help="of --sigma")
    parser.add_argument("--view", type=int, default=192, help="of --sigma")
    parser.add_argument("--reach", type=float, default=REACH, help="of --sigma: the disc's radius")
    parser.add_argument("--noise", nargs="*", default=NOISES, help="of --sigma")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    grid = _with_sigmas(arguments) if arguments.sigma else GRID
    for rendering, canary, noise, parent in grid:
        if arguments.only not in (None, rendering) or arguments.canary not in (None, canary):
            continue
        suffix = "-small" if arguments.small else "" if parent == 128 else f"-{parent}px"
        suffix = "" if arguments.sigma else suffix
        path = arguments.out / f"{rendering}-{canary}-{noise}{suffix}.json"
        settings = {**(QUICK if arguments.small else FULL), "parent": parent}
        if arguments.small and not arguments.sigma:
            settings["parent"] = QUICK["parent"]
        settings |= {"views": arguments.views, "batch": arguments.batch}
        with claimed(path.with_suffix(".claimed")) as acquired:
            if acquired and not path.exists():  # neither claimed by another process nor done
                _measure(path, rendering, canary, noise, settings)


def _measure(
    path: Path, rendering: str, canary: str, noise: Noise, settings: dict[str, Any]
) -> None:
    device, started = pick_device(), time.monotonic()
    way = WAYS.get(rendering, rendering)
    leak = measure_leak(way, canary, noise, **settings, device=device)
    result = {**asdict(leak), "seconds": round(time.monotonic() - started, 1)}
    result |= {name: settings[name] for name in ("parent", "small", "fourfold")}
    text = json.dumps({**result, "hardware": device.type}, indent=1) + "\n"
    write_whole(path, lambda part: part.write_text(text))
    print(json.dumps(result), flush=True)


def _with_sigmas(arguments: argparse.Namespace) -> list[tuple[str, str, Noise, int]]:
    """Leak-free views of one size with each blur; all noises of a canary before the next one."""
    parent, view = arguments.parent, arguments.view
    disc = "" if arguments.reach == REACH else f"-reach{arguments.reach:g}"
    names = {f"leakfree-{parent}-{view}-sigma{sigma:g}{disc}": sigma for sigma in arguments.sigma}
    for name, sigma in names.items():
        render = LeakfreeViews(view, sigma, arguments.reach).render

        def named(parents: Tensor, angles: Tensor, render: Render = render) -> Tensor:
            return render(parents, angles)

        named.__name__ = name
        WAYS[name] = named
    return [
        (name, canary, noise, parent)
        for canary in reversed(CANARIES)
        for noise in arguments.noise
        for name in names
    ]


if __name__ == "__main__":
    main()
