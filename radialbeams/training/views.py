"""Views: what a model is shown, rendered from upright parents. A protocol says how.

`paper`: pad by δ, rotate bilinearly at the same resolution. Its border and its interpolation
give the angle away in part, so its figures are for comparison with the paper only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from radialbeams.nn.angles import TURN
from radialbeams.nn.beams import margin
from radialbeams.nn.rotation import Padding, pad, rotate

Protocol = Literal["paper"]
PROTOCOLS: tuple[Protocol, ...] = ("paper",)

Group = Literal["so2", "cyclic"]
# Which turns are drawn: any angle, or only those of C_|B|, the steps between beams.
GROUPS: tuple[Group, ...] = ("so2", "cyclic")

# Each purpose draws from a stream of its own, so that adding one changes none of the others.
Stream = Literal["angles", "order", "mirror", "jitter", "evaluation"]
STREAMS: tuple[Stream, ...] = ("angles", "order", "mirror", "jitter", "evaluation")


def draws(stream: Stream, seed: int, epoch: int, shape: int | tuple[int, ...]) -> np.ndarray:
    """Uniform numbers in [0, 1) that depend on nothing but these arguments.

    Counter-based, so a resumed run meets the angles that an undisturbed one would have met.
    """
    key = [seed, (epoch << 8) + STREAMS.index(stream)]
    return np.random.Generator(np.random.Philox(key=np.array(key, dtype=np.uint64))).random(shape)


def draw_angles(
    stream: Stream, seed: int, epoch: int, count: int, *, group: Group = "so2", num_beams: int = 0
) -> Tensor:
    """(count,) float32 radians in [0, 2π): one for each image of the epoch, by its index."""
    turns = draws(stream, seed, epoch, count)
    if group == "cyclic":
        turns = np.floor(turns * num_beams) / num_beams
    elif group != "so2":
        raise ValueError(f"Angles come from one of {', '.join(GROUPS)}; got {group!r}.")
    return torch.from_numpy((turns * TURN).astype(np.float32))


@dataclass(frozen=True)
class PaperViews:
    """Bytes (N, C, W, W) and radians (N,) → views (N, C, W + 2δ, W + 2δ) in [0, 1]."""

    padding: Padding = "zeros"

    def size(self, parent: int) -> int:
        return parent + 2 * margin(parent)

    def render(self, parents: Tensor, angles: Tensor) -> Tensor:
        return rotate(
            as_floats(parents), angles, width=margin(parents.shape[-1]), padding=self.padding
        )

    def upright(self, parents: Tensor) -> Tensor:
        """X₀ of a training pair: the same canvas, nothing resampled."""
        return pad(as_floats(parents), margin(parents.shape[-1]), self.padding)


def as_floats(parents: Tensor) -> Tensor:
    return parents.float().div_(255) if parents.dtype == torch.uint8 else parents


def mirror(parents: Tensor, which: Tensor) -> Tensor:
    """Flips the chosen ones left to right; upright stays upright."""
    return torch.where(which[:, None, None, None], parents.flip(-1), parents)


def jitter(views: Tensor, strength: float, uniform: Tensor) -> Tensor:
    """Brightness, and colour by channel, times up to e^±strength: (N, C, S, S), (N, 1 + C)."""
    gains = ((2 * uniform - 1) * strength).exp()
    channel = gains[:, 1 : 1 + views.shape[1]].pow(1 / math.sqrt(2))
    return (views * (gains[:, :1] * channel)[:, :, None, None]).clamp_(0, 1)
