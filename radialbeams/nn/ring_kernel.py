"""The ring after its radial blocks as one Triton kernel, for inference on a GPU in half precision.

Layer by layer, this part moves far more bytes than it computes with: each ring block reads every
beam three times and stores what the next layer reads again. Here one program takes all beams of
one image through all layers, and only the weights, which all programs share, are read anew.

Convention: rows are beams, columns are channels. A circular shift of the beams is a product with a
permutation matrix, which is exact. Rows after the last beam are padding and never leave the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from radialbeams.nn.ring import RingBlock

CHUNK = 64  # channels of one product
# By the width of the ring: warps of a program, and stages of its loads.
WARPS, STAGES = {64: 4, 128: 4, 256: 8}, {64: 2, 128: 2, 256: 1}


# The tensors that the kernel reads, in its order; C is the width of the ring.
NAMES = (
    "kernel_collapse",  # (d · maps, C)
    "kernel_collapse_bias",  # (C,)
    "kernel_whole",  # (C, C), from inputs to outputs
    "kernel_whole_bias",  # (C,)
    "kernel_wide",  # (blocks, 3, C, C)
    "kernel_wide_bias",  # (blocks, C)
    "kernel_mix",  # (blocks, C, C)
    "kernel_mix_bias",  # (blocks, C)
    "kernel_dilations",  # (blocks,) of int32
)


def packed(collapse: nn.Conv2d, whole: nn.Linear, blocks: Sequence[RingBlock]) -> list[Tensor]:
    """The weights of folded layers, as listed in NAMES."""
    along = collapse.weight.squeeze(2).permute(2, 1, 0).flatten(0, 1)  # (d·maps, C)
    wide = [block.wide.weight.squeeze(3).permute(2, 1, 0) for block in blocks]  # (3, C, C) each
    mix = [block.mix.weight.flatten(1).t() for block in blocks]
    tensors = [
        along,
        collapse.get_parameter("bias"),
        whole.weight.t(),
        whole.bias,
        torch.stack(wide),
        torch.stack([block.wide.get_parameter("bias") for block in blocks]),
        torch.stack(mix),
        torch.stack([block.mix.get_parameter("bias") for block in blocks]),
        torch.tensor([block.dilation for block in blocks], dtype=torch.int32),
    ]
    return [tensor.detach().clone().contiguous() for tensor in tensors]


@triton.jit
def _gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def _shift(rows, num_beams, by, R: tl.constexpr):
    """(R, R): the permutation that puts beam (b + by) mod |B| into row b."""
    source = (rows + by + num_beams) % num_beams
    beams = tl.arange(0, R)
    hit = (beams[None, :] == source[:, None]) & (rows[:, None] < num_beams)
    return hit.to(tl.float16)


@triton.jit
def _decode(
    features,
    collapse,
    collapse_bias,
    whole,
    whole_bias,
    wide,
    wide_bias,
    mix,
    mix_bias,
    dilations,
    rim,
    num_beams,
    depth,
    BLOCKS: tl.constexpr,
    R: tl.constexpr,
    C: tl.constexpr,
    K: tl.constexpr,
):
    image = tl.program_id(0).to(tl.int64)
    rows = tl.arange(0, R)
    c = tl.arange(0, C)
    k = tl.arange(0, K)
    inside = rows < num_beams
    beam = image * num_beams + rows
    # Along the beams: (R, depth) @ (depth, C), in pieces of K.
    acc = tl.zeros([R, C], tl.float32)
    for start in range(0, depth, K):
        known = start + k < depth
        part = tl.load(
            features + beam[:, None] * depth + start + k[None, :],
            inside[:, None] & known[None, :],
            other=0.0,
        )
        kernel = tl.load(
            collapse + (start + k)[:, None] * C + c[None, :], known[:, None], other=0.0
        )
        acc += tl.dot(part, kernel)
    x = _gelu(acc + tl.load(collapse_bias + c).to(tl.float32)[None, :])
    x = tl.where(inside[:, None], x, 0.0)
    # The same for every beam: a linear map of the mean over all of them.
    mean = (tl.sum(x, 0) / num_beams).to(tl.float16)
    same = tl.where(rows[:, None] == 0, mean[None, :], 0.0).to(tl.float16)  # as a row of a matrix
    weights = tl.load(whole + c[:, None] * C + c[None, :])
    moved = tl.sum(tl.dot(same, weights), 0) + tl.load(whole_bias + c).to(tl.float32)
    ring = tl.where(inside[:, None], x + moved[None, :], 0.0).to(tl.float16)
    # Around the ring.
    for block in tl.static_range(BLOCKS):
        dilation = tl.load(dilations + block)
        before = tl.dot(_shift(rows, num_beams, -dilation, R), ring).to(tl.float16)
        after = tl.dot(_shift(rows, num_beams, dilation, R), ring).to(tl.float16)
        mixed = tl.zeros([R, C], tl.float32)
        for start in range(0, C, K):
            tap = wide + block * 3 * C * C + c[:, None] * C + start + k[None, :]
            hidden = tl.dot(before, tl.load(tap))
            hidden += tl.dot(ring, tl.load(tap + C * C))
            hidden += tl.dot(after, tl.load(tap + 2 * C * C))
            hidden += tl.load(wide_bias + block * C + start + k).to(tl.float32)[None, :]
            rest = tl.load(mix + block * C * C + (start + k)[:, None] * C + c[None, :])
            mixed += tl.dot(_gelu(hidden).to(tl.float16), rest)
        mixed += tl.load(mix_bias + block * C + c).to(tl.float32)[None, :]
        ring = _gelu(ring.to(tl.float32) + mixed).to(tl.float16)
    tl.store(rim + beam[:, None] * C + c[None, :], ring, inside[:, None])


def fits(num_beams: int, width: int) -> bool:
    """Whether the kernel can be built: all beams and channels of an image are one tile."""
    return num_beams <= 64 and width in WARPS


@torch.library.custom_op("radialbeams::ring_decoded", mutates_args=())
def decoded(features: Tensor, tensors: list[Tensor]) -> Tensor:
    """(N, |B|, d · maps) in half precision → (N, |B|, C): the ring before its head.

    An operator of its own, so that `torch.compile` takes it as it is.
    """
    count, num_beams, depth = features.shape
    width = tensors[0].shape[1]
    rim = features.new_empty((count, num_beams, width))
    _decode[(count,)](
        features,
        *tensors,
        rim,
        num_beams,
        depth,
        BLOCKS=tensors[4].shape[0],
        R=max(16, triton.next_power_of_2(num_beams)),
        C=width,
        K=CHUNK,
        num_warps=WARPS[width],
        num_stages=STAGES[width],
    )
    return rim


@decoded.register_fake
def _(features: Tensor, tensors: list[Tensor]) -> Tensor:
    return features.new_empty((*features.shape[:2], tensors[0].shape[1]))
