"""Settings of the kernels that might be faster than their own, and whether they are right.

A part of `benchmarks.on_gpu`: its results say what to change in the modules of the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.on_gpu.models import front_of
from benchmarks.on_gpu.photos import photos
from benchmarks.on_gpu.timing import back_to_back, captured, device, in_turns
from radialbeams.front.view_geometry import ViewGeometry
from radialbeams.nn.kernels import attention, ends, viewing
from radialbeams.nn.kernels.using import without_kernels
from radialbeams.nn.kernels.viewing import ViewTile
from radialbeams.stored import JsonDict

SECONDS = 0.06  # to time one variant
VIEWS = (64, 1024, 2048, 4096)
RINGS = ((48, 256), (32, 128))  # beams and maps of `ring` and of `ring.coil100`
TILES = tuple(
    ViewTile(*tile) for tile in ((64, 64, 32, 8, 3), (128, 64, 64, 8, 2), (128, 64, 32, 8, 3))
)
PARENT, VIEW, SIZE, BATCH = 176, 79, 224, 64  # of `ring`, in front of a classifier
SIDES = (150, 151, 160, 224, 300)
ROUNDS = 40


class Variant(NamedTuple):
    """A call with some constants of a module replaced, and the exact result."""

    name: str
    call: Callable[[], Tensor]
    exact: Callable[[], Tensor]
    module: Any = None
    changes: JsonDict | None = None
    timed: bool = True

    def changed(self) -> Any:
        return patch.multiple(self.module, **self.changes) if self.changes else nullcontext()


class Variants:
    """Made in `prepare`; compared and timed in `measure`."""

    def __init__(self, views: tuple[int, ...] = VIEWS, sides: tuple[int, ...] = SIDES) -> None:
        self.views, self.sides = views, sides

    @torch.inference_mode()
    def prepare(self) -> None:
        for variant in self._all():
            try:
                with variant.changed():
                    variant.call()
            except Exception as error:  # reported where it is measured
                print(variant.name, repr(error)[:200], flush=True)
        front_of("ring", torch.float16)(_images(2, SIZE))

    @torch.inference_mode()
    def measure(self) -> Iterator[JsonDict]:
        found: JsonDict = {}
        for variant in self._all():
            try:
                found[variant.name] = _measured(variant)
            except Exception as error:  # of this variant: too large, say
                found[variant.name] = f"{type(error).__name__}: {error}"[:160]
            yield {"variants": found}
        yield {"variants": found, "front of ring, us": _fronts()}

    def _all(self) -> Iterator[Variant]:
        for beams, maps in RINGS:
            for count in self.views:
                yield from _wholes(count, beams, maps)
        yield from _attentions(self.views[0])
        for tile in TILES:
            for dtype in (torch.float16, torch.float32):
                for side in self.sides:
                    for form in ("whole", "cut", "channels last"):
                        yield _viewed(tile, dtype, side, form)


def _measured(variant: Variant) -> JsonDict:
    """The largest error as a share of the deviation, and the time."""
    exact = variant.exact().double()
    with variant.changed():
        apart = (variant.call().double() - exact).abs().max() / exact.std()
        row: JsonDict = {"largest": float(f"{float(apart):.2g}")}
        if variant.timed:
            row["us"] = float(f"{1e6 * back_to_back(captured(variant.call), SECONDS):.4g}")
    return row


def _wholes(count: int, beams: int, maps: int) -> Iterator[Variant]:
    """The mean over the beams by programs of many views, and by those of one."""
    x = torch.randn(count, beams, 1, maps, device=device()).half()
    weight = (torch.randn(maps, maps, device=device()) / maps**0.5).half()
    bias = torch.randn(maps, device=device()).half()

    def exact() -> Tensor:
        mean = x.float().mean(1, keepdim=True)
        return x.float() + mean @ weight.float() + bias.float()

    for name, enough in (("many", 0), ("one", 1 << 30)):
        yield Variant(
            f"mean of {count} views, {beams} beams, {maps} maps, programs of {name}",
            lambda: ends.with_whole(x, weight, bias),
            exact,
            *(ends, {"ENOUGH": enough}),
        )


def _attentions(count: int) -> Iterator[Variant]:
    beams, maps, heads = 48, 256, 8
    projected = torch.randn(count, beams, 1, 3 * maps, device=device()).half()
    bias = torch.randn(heads, beams, beams, device=device()).half()

    def by_torch(projected: Tensor, bias: Tensor) -> Tensor:
        parts = projected.reshape(count, beams, 3, heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*parts.unbind(), attn_mask=bias[None])
        return mixed.transpose(1, 2).reshape(count, beams, 1, maps)

    exact = lambda: by_torch(projected.float(), bias.float())  # noqa: E731
    yield Variant(f"attention of {count} views, torch", lambda: by_torch(projected, bias), exact)
    for warps in (2, 4):
        yield Variant(
            f"attention of {count} views, {warps} warps",
            *(lambda: attention.attended(projected, bias), exact, attention, {"WARPS": warps}),
        )


def _viewed(tile: ViewTile, dtype: torch.dtype, side: int, form: str) -> Variant:
    geometry = ViewGeometry(VIEW, 3, PARENT).to(device())
    wide = photos(4, 3, side + 10)[..., :side, :].to(device(), dtype)
    images = wide if form == "cut" else wide[..., :side].contiguous()
    if form == "channels last":
        images = images.contiguous(memory_format=torch.channels_last)

    def exact() -> Tensor:
        with without_kernels():
            return geometry(images)

    name = f"views by {tuple(tile)}, {dtype}, {side} pixels, {form}"
    changes = {"tile_for": lambda _size: tile}
    return Variant(name, lambda: geometry(images), exact, viewing, changes, timed=False)


def _images(batch: int, side: int) -> Tensor:
    return torch.rand(batch, 3, side, side, device=device(), dtype=torch.float16)


def _fronts() -> dict[str, float]:
    """`ring` in front of a classifier with each tile of the views, in turns."""
    module, images = front_of("ring", torch.float16), _images(BATCH, SIZE)
    calls = {}
    for tile in TILES:
        with patch.object(viewing, "tile_for", lambda _size, tile=tile: tile):
            calls[str(tuple(tile))] = captured(lambda: module(images))
    return {name: round(1e6 * spent, 1) for name, spent in in_turns(calls, ROUNDS).items()}
