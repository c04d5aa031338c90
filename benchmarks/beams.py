"""How much faster one gather samples the beams of a batch than a Python loop over its images.

A batch of RGB images, |B| = 32 beams of D = 64 pixels, ε = 1. All variants return the same
(N, |B|, C, 2ε + 1, D); this is checked first. The loops take the images one by one in numpy, and
inside an image

    beams     index by index array, one beam at a time, and stack
    samples   pixel by pixel, one index at a time

All are timed alternately, so that other load on the machine affects them equally; the medians are
compared. Exits 1 if the gather is less than 20 times as fast as the chosen `--loop`. Polar beams
interpolate, so no loop here is equivalent to them; their time is shown for information.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from radialbeams.nn.beams import BresenhamBeams, PolarBeams

NUM_BEAMS, BEAM_LENGTH, EPSILON, SIZE, CHANNELS = 32, 64, 1, 128, 3
REQUIRED = 20

Floats = NDArray[np.float32]


def loop_over_beams(images: Floats, index: NDArray[np.int64]) -> Floats:
    batch = []
    for image in images:
        pixels = image.reshape(CHANNELS, -1)
        batch.append(np.stack([pixels[:, beam] for beam in index]))
    return np.stack(batch)


def loop_over_samples(images: Floats, index: NDArray[np.int64]) -> Floats:
    batch = []
    samples = [(*where, *divmod(int(pixel), SIZE)) for where, pixel in np.ndenumerate(index)]
    for image in images:
        beams = np.empty((len(index), CHANNELS, *index.shape[1:]), image.dtype)
        for beam, row, step, y, x in samples:
            beams[beam, :, row, step] = image[:, y, x]
        batch.append(beams)
    return np.stack(batch)


def measure(batch: int, rounds: int) -> dict[str, float]:
    """Median seconds of each variant."""
    images = torch.rand(batch, CHANNELS, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
    bresenham = BresenhamBeams(NUM_BEAMS, BEAM_LENGTH, EPSILON, SIZE)
    polar = PolarBeams(NUM_BEAMS, BEAM_LENGTH, EPSILON, SIZE)
    array, index = images.numpy(), bresenham.index.numpy()
    ways: dict[str, Callable[[], Any]] = {
        "gather": lambda: bresenham(images),
        "loop over beams": lambda: loop_over_beams(array, index),
        "loop over samples": lambda: loop_over_samples(array, index),
        "polar": lambda: polar(images),
    }
    for name in ("loop over beams", "loop over samples"):
        if not np.array_equal(ways[name](), ways["gather"]().numpy()):
            raise RuntimeError(f"The {name} and the gather differ, so there is nothing to compare.")
    times: dict[str, list[float]] = {name: [] for name in ways}
    with torch.inference_mode():
        for _ in range(1 + rounds):
            for name, way in ways.items():
                started = time.perf_counter()
                way()
                times[name].append(time.perf_counter() - started)
    return {name: statistics.median(seconds[1:]) for name, seconds in times.items()}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, help="threads of torch. Default: its own choice")
    parser.add_argument("--loop", choices=("beams", "samples"), default="samples")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    arguments = parser.parse_args(argv)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    seconds = measure(arguments.batch, arguments.rounds)
    ratio = seconds[f"loop over {arguments.loop}"] / seconds["gather"]
    if arguments.json:
        result = {name.replace(" ", "_"): 1000 * value for name, value in seconds.items()}
        setting = {"batch": arguments.batch, "threads": torch.get_num_threads()}
        print(json.dumps({**setting, "milliseconds": result, "ratio": ratio}))
    else:
        print(f"batch {arguments.batch}, {torch.get_num_threads()} threads")
        for name, value in seconds.items():
            print(f"{name:18} {1000 * value:8.1f} ms {value / seconds['gather']:8.1f} ×")
    if ratio < REQUIRED:
        print(
            f"The gather is {ratio:.1f} times as fast as the loop over {arguments.loop}; "
            f"at least {REQUIRED} is required.",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
