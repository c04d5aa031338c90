"""From the outputs of a network straight to the maps that undo the rotations, in one kernel.

For images that are all turned by the angle of the most probable bin, with nothing else to know.
What it computes is defined by `posterior.answer`, `affine.turned_back` and `affine.inverted`, of
which torch makes about fifty kernels of a few numbers each.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from radialbeams.nn.kernels.using import device_of

TURN = tl.constexpr(2 * math.pi)


@triton.jit
def _origins(
    logits, offsets, origins, bins, logit_step, logit_next, offset_step, offset_next,
    middle_x, middle_y, new_x, new_y, tolerance, tie, BINS: tl.constexpr,
):  # fmt: skip
    image = tl.program_id(0)
    index = tl.arange(0, BINS)
    logit = tl.load(logits + image * logit_step + index * logit_next, index < bins, -float("inf"))
    best = tl.argmax(logit.to(tl.float32), 0)
    offset = tl.load(offsets + image * offset_step + best * offset_next).to(tl.float32)
    angle = (best + offset) * (TURN / bins)
    cos, sin = tl.cos(angle), tl.sin(angle)
    # Quarter turns only move pixels.
    quarter = tl.minimum(tl.abs(cos), tl.abs(sin)) < tolerance
    cos = tl.where(quarter, tl.floor(cos + 0.5), cos)
    sin = tl.where(quarter, tl.floor(sin + 0.5), sin)
    x = new_x - middle_x * cos + middle_y * sin
    y = new_y - middle_x * sin - middle_y * cos
    # If one side is odd and the other even, about a point half a pixel away.
    x = tl.where(quarter, tl.floor(x + 0.5 + tie), x)
    y = tl.where(quarter, tl.floor(y + 0.5 + tie), y)
    scale = cos * cos + sin * sin
    cos, sin = cos / scale, sin / scale
    out = origins + image * 6
    tl.store(out, cos)
    tl.store(out + 1, sin)
    tl.store(out + 2, -(cos * x + sin * y))
    tl.store(out + 3, -sin)
    tl.store(out + 4, cos)
    tl.store(out + 5, sin * x - cos * y)


@torch.library.custom_op("radialbeams::origins", mutates_args=())
def origins(
    logits: Tensor, offsets: Tensor, middles: list[float], tolerance: float, tie: float
) -> Tensor:
    """(N, bins) each → (N, 2, 3): from points of the upright images to those of the originals.

    `middles` are the x and y of the middle of an image and of its new canvas. Sines and cosines
    below `tolerance` are 0, and `tie` decides between two pixels.
    """
    maps: Tensor = _maps(logits, offsets, middles, tolerance, tie)
    count, bins = logits.shape
    if count:
        with device_of(logits):
            _origins[(count,)](
                *(logits, offsets, maps, bins, *logits.stride(), *offsets.stride()),
                *(*map(float, middles), tolerance, tie),
                BINS=triton.next_power_of_2(bins),
                num_warps=1,
            )
    return maps


@origins.register_fake
def _maps(
    logits: Tensor, offsets: Tensor, middles: list[float], tolerance: float, tie: float
) -> Tensor:
    return torch.empty((logits.shape[0], 2, 3), dtype=torch.float32, device=logits.device)
