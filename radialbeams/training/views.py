"""Views: a model's inputs, rendered from upright parents by a protocol.

`paper`: pad by δ, rotate bilinearly at the same resolution. Its border and its interpolation
give the angle away, so its figures are for comparison with the paper only.

`leakfree`: blur by one parent pixel, resample once (bicubic) to less than half the size, and keep
only the disc that no rotation brings near the parent's border. A larger view needs its own `sigma`,
wide enough to hide the grid at that size. `radialbeams leaks` measures both protocols.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

import numpy as np
import torch
from torch import Tensor

from radialbeams.cards import ViewProtocol
from radialbeams.nn.angles import TURN
from radialbeams.nn.beams import margin
from radialbeams.nn.rotation import (
    REACH,
    Padding,
    blur,
    blur_sigma,
    gaussian_matrix,
    largest_view,
    pad,
    render,
    rotate,
)

Protocol = Literal["leakfree", "paper"]
PROTOCOLS: tuple[Protocol, ...] = ("leakfree", "paper")

Group = Literal["so2", "cyclic"]
# Which angles are drawn: any, or only those of C_|B|, the multiples of the angle between beams.
GROUPS: tuple[Group, ...] = ("so2", "cyclic")

# Each purpose has its own stream of random numbers, so that adding one changes no other.
Stream = Literal["angles", "order", "augment", "evaluation", "noise"]
STREAMS: tuple[Stream, ...] = ("angles", "order", "augment", "evaluation", "noise")


def draws(stream: Stream, seed: int, epoch: int, shape: int | tuple[int, ...]) -> np.ndarray:
    """Uniform numbers in [0, 1) that depend only on these arguments.

    The generator is counter-based, so a resumed run draws the same angles as an uninterrupted one.
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
        raise ValueError(f"group must be one of {', '.join(GROUPS)}; got {group!r}.")
    return torch.from_numpy((turns * TURN).astype(np.float32))


@dataclass(frozen=True)
class PaperViews:
    """Bytes (N, C, W, W) and radians (N,) → views (N, C, W + 2δ, W + 2δ) in [0, 1]."""

    padding: Padding = "zeros"
    exact: bool = True  # quarter turns to the bit

    def size(self, parent_size: int) -> int:
        return parent_size + 2 * margin(parent_size)

    def render(self, parents: Tensor, angles: Tensor) -> Tensor:
        return self.turn(self.prepare(parents), angles)

    def prepare(self, parents: Tensor) -> Tensor:
        return as_floats(parents)

    def turn(
        self,
        prepared: Tensor,
        angles: Tensor,
        zoom: Tensor | None = None,
        shift: Tensor | None = None,
    ) -> Tensor:
        if zoom is not None or shift is not None:
            raise ValueError(
                "The paper's protocol has no zoom. Use leakfree, or set zoom and aspect to 0."
            )
        width = margin(prepared.shape[-1])
        return rotate(prepared, angles, width=width, padding=self.padding, exact=self.exact)

    def upright(self, parents: Tensor) -> Tensor:
        """X₀ of a training pair: the same canvas, not resampled."""
        return pad(as_floats(parents), margin(parents.shape[-1]), self.padding)


@dataclass(frozen=True)
class LeakfreeViews:
    """Bytes (N, C, W, W) and radians (N,) → views (N, C, S, S) in [0, 1]: a disc on black."""

    view_size: int | None = None  # None: the largest size that the protocol allows
    sigma: float | None = None  # of the Gaussian, in parent pixels; None: from the sizes
    reach: float = REACH  # the disc's radius as a share of the parent's half-width

    def size(self, parent_size: int) -> int:
        return self.view_size or largest_view(parent_size)

    def render(self, parents: Tensor, angles: Tensor) -> Tensor:
        return self.turn(self.prepare(parents), angles)

    def prepare(self, parents: Tensor) -> Tensor:
        """Bytes → blurred floats: the part that does not depend on the angle."""
        width = parents.shape[-1]
        sigma = blur_sigma(width, self.size(width), self.sigma)
        return blur(as_floats(parents), _blur_kernel(width, sigma, parents.device))

    def turn(
        self,
        prepared: Tensor,
        angles: Tensor,
        zoom: Tensor | None = None,
        shift: Tensor | None = None,
    ) -> Tensor:
        size = self.size(prepared.shape[-1])
        turns = angles.to(prepared.device)
        return render(prepared, turns, size, reach=self.reach, zoom=zoom, shift=shift)

    def upright(self, parents: Tensor) -> Tensor:
        """X₀ of a training pair, resampled like every other view."""
        return self.render(parents, torch.zeros(parents.shape[0], device=parents.device))


Views = PaperViews | LeakfreeViews


def make_views(
    protocol: Protocol,
    *,
    padding: Padding = "zeros",
    view_size: int,
    sigma: float | None = None,
    reach: float = REACH,
    exact: bool = True,
) -> Views:
    if protocol == "paper":
        return PaperViews(padding, exact)
    if protocol == "leakfree":
        return LeakfreeViews(view_size, sigma, reach)
    raise ValueError(f"protocol must be one of {', '.join(PROTOCOLS)}; got {protocol!r}.")


def views_of(protocol: ViewProtocol, view_size: int, *, exact: bool = True) -> Views:
    """The views of a model, by the protocol on its card."""
    return make_views(
        protocol.name,
        padding=cast(Padding, protocol.padding),
        view_size=view_size,
        sigma=protocol.sigma,
        reach=protocol.reach,
        exact=exact,
    )


@cache
def _blur_kernel(parent_size: int, sigma: float, device: torch.device) -> Tensor:
    return gaussian_matrix(parent_size, sigma).to(device)


def as_floats(parents: Tensor) -> Tensor:
    return parents.float().div_(255) if parents.dtype == torch.uint8 else parents
