"""Sampling of beams, in its possible forms, against a copy of the samples."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn import functional as F

from benchmarks.beams import BEAM_LENGTH, CHANNELS, EPSILON, NUM_BEAMS, SIZE
from benchmarks.clock import compared
from benchmarks.on_gpu.timing import Call, captured, device, in_turns
from radialbeams.nn.beams import BresenhamBeams, PolarBeams
from radialbeams.stored import JsonDict

BATCHES = (128, 4096)
MOST = 4  # copies


class Sampling:
    def __init__(self, batches: tuple[int, ...] = BATCHES) -> None:
        self.batches = batches

    def prepare(self) -> None:
        pass

    @torch.inference_mode()
    def measure(self) -> Iterator[JsonDict]:
        result = {}
        for batch in self.batches:
            calls = _calls(batch)
            graphs = {name: captured(call) for name, call in calls.items()}
            result[f"batch {batch}"] = compared(in_turns(graphs, 30), "copy of the beams", batch)
            yield result


def _calls(batch: int) -> dict[str, Call]:
    place = device()
    images = torch.rand(batch, CHANNELS, SIZE, SIZE, device=place)
    bresenham = BresenhamBeams(NUM_BEAMS, BEAM_LENGTH, EPSILON, SIZE).to(place)
    polar = PolarBeams(NUM_BEAMS, BEAM_LENGTH, EPSILON, SIZE).to(place)
    beams = bresenham(images)  # (N, |B|, C, 2ε+1, D)
    target = torch.empty_like(beams)
    grid = polar.grid.float().expand(batch, -1, -1, -1)
    planes = SIZE**2 * torch.arange(CHANNELS, device=place)
    index = (bresenham.index.unsqueeze(-3) + planes[:, None, None]).flatten()
    flat, each = images.flatten(1), index.expand(batch, -1)
    last = images.permute(0, 2, 3, 1).flatten(1, 2).contiguous()  # (N, W·W, C)
    pixels = bresenham.index.flatten()
    return {
        "copy of the beams": lambda: target.copy_(beams),
        "gather": lambda: bresenham(images),
        "index_select": lambda: flat.index_select(1, index),
        "indexing": lambda: flat[:, index],
        "torch.gather": lambda: flat.gather(1, each),
        "index_select, channels last": lambda: last.index_select(1, pixels),
        "polar": lambda: polar(images),
        "grid_sample": lambda: F.grid_sample(images, grid, align_corners=True),
    }
