"""Sampling beams against a loop, `grid_sample`, and plain copies of the bytes that it reads.

The bar is in copies of the beams: 74 kB are read and 74 kB written for each image. That is strict,
since memory comes in lines of 64 bytes, and the beams lie in 91 % of the lines of an image of
197 kB. So a copy of the images is measured as well. The batch is larger than the processor's cache,
as it would be if images came from elsewhere.

A copy is made into memory that exists, but beams are new: the system would have to find and clear
pages for them, which can take as long as all else, or not, depending on what ran before. So freed
memory is kept for the next call.
"""

from __future__ import annotations

import contextlib
import ctypes
import time

import torch
from torch.nn import functional as F

from benchmarks.beams import (
    BEAM_LENGTH,
    CHANNELS,
    EPSILON,
    NUM_BEAMS,
    SIZE,
    loop_over_beams,
    loop_over_samples,
)
from benchmarks.clock import Call, compared, in_turns
from radialbeams.nn.beams import BresenhamBeams, PolarBeams
from radialbeams.stored import JsonDict

MOST = 4  # times the copy that the gather may take
TRIM, MMAP = -1, -3  # thresholds of glibc's `mallopt`, in bytes
KEPT = 2**30


def measure(quick: bool) -> JsonDict:
    _keep_freed_memory()
    batch = 16 if quick else 128
    torch.set_num_threads(1)
    results = {"CPU": _compared(torch.device("cpu"), batch, loops=True)}
    if torch.cuda.is_available():
        results["GPU"] = _compared(torch.device("cuda"), batch, loops=False)
    return results


def _keep_freed_memory() -> None:
    with contextlib.suppress(AttributeError, OSError):  # not glibc
        library = ctypes.CDLL(None)
        for threshold in (TRIM, MMAP):
            library.mallopt(threshold, KEPT)


@torch.inference_mode()
def _compared(device: torch.device, batch: int, *, loops: bool) -> JsonDict:
    images = torch.rand(batch, CHANNELS, SIZE, SIZE).to(device)
    bresenham = BresenhamBeams(NUM_BEAMS, BEAM_LENGTH, EPSILON, SIZE).to(device)
    polar = PolarBeams(NUM_BEAMS, BEAM_LENGTH, EPSILON, SIZE).to(device)
    beams = bresenham(images)
    grid = polar.grid.float().expand(batch, -1, -1, -1)
    target, others = torch.empty_like(beams), torch.empty_like(images)
    calls: dict[str, Call] = {
        "copy of the beams": lambda: target.copy_(beams),
        "copy of the images": lambda: others.copy_(images),
        "gather": lambda: bresenham(images),
        "polar": lambda: polar(images),
        "grid_sample": lambda: F.grid_sample(images, grid, align_corners=True),
    }
    if loops:
        array, index = images.numpy(), bresenham.index.numpy()
        calls["loop over beams"] = lambda: loop_over_beams(array, index)
        calls["loop over samples"] = lambda: loop_over_samples(array, index)
    awaited = {name: _awaited(call, device) for name, call in calls.items()}
    # On the CPU one thread, in its own time: the copy is over before a second thread has begun.
    clock = time.thread_time if device.type == "cpu" else time.perf_counter
    return compared(in_turns(awaited, 9, clock), "copy of the beams", batch)


def _awaited(call: Call, device: torch.device) -> Call:
    if device.type == "cpu":
        return call

    def run() -> None:
        call()
        torch.cuda.synchronize()

    return run
