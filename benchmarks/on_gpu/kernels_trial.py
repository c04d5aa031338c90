"""A trial of the networks' Triton kernels: are they right on this GPU, and what do they gain?

    python -m benchmarks.on_gpu.kernels_trial OUT.json --seconds 60 [--compile] [--tiles]

Writes the results after every part and prints each. A part that fails is reported by its error;
nothing new is started once the time is up. `--tiles` also times other tiles at the real shapes.
Most of the time goes into compiling them: with `--warm 0 8` to `--warm 7 8`, eight processes at
the same time compile a part of them each, beforehand.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from benchmarks.on_gpu.models import MODELS, network_of
from benchmarks.on_gpu.timing import back_to_back, captured, device, give_back, kernels, wait
from radialbeams.nn import convolutional_kernels, ring_kernels
from radialbeams.nn.kernels import (
    attention,
    depthwise,
    ends,
    pair,
    product,
    sampling,
    stem,
    view_stem,
)
from radialbeams.nn.kernels import convolution as convolutions
from radialbeams.nn.kernels.convolution import Tile
from radialbeams.nn.kernels.using import without_kernels
from radialbeams.stored import JsonDict

BATCHES, COMPARED = (4096, 64, 1), 256
KERNELS = {
    "sampled": sampling,
    "stem": stem,
    "convolution": convolutions,
    "pair": pair,
    "with_whole": ends,
    "attended": attention,
    "head": ends,
}
CONVOLUTIONAL = {"stem": view_stem, "product": product, "depthwise": depthwise}
SHORT = 0.06  # seconds to time one layer
TILES: dict[int, tuple[Tile, ...]] = {  # of a convolution, by the number of maps, at most
    64: (
        *(Tile(128, 64, 64, 4, stages) for stages in (2, 3, 4)),
        *(Tile(128, 64, 64, 8, 3), Tile(256, 64, 64, 8, 3), Tile(64, 64, 64, 4, 4)),
        *(Tile(128, 64, 32, 4, 4), Tile(128, 64, 64, 4, 3, 128), Tile(128, 64, 16, 4, 5)),
    ),
    256: (
        *(Tile(128, 128, 64, 8, stages) for stages in (2, 3, 4)),
        *(Tile(128, 128, 64, 4, 3), Tile(128, 128, 32, 8, 4), Tile(64, 128, 64, 4, 3)),
        *(Tile(256, 128, 64, 8, 3), Tile(128, 64, 64, 4, 3), Tile(128, 256, 64, 8, 3)),
        Tile(128, 128, 64, 8, 3, 128),
    ),
}
PRODUCTS = tuple(  # of `general`, which are bound by the memory
    product.ProductTile(*sizes)
    for sizes in (
        *((128, 64, step, 4, 3) for step in (16, 32, 64)),
        *((128, 128, step, 8, 3) for step in (16, 32, 64)),
        *((128, 32, 32, 4, 4), (128, 32, 64, 4, 3), (256, 64, 32, 8, 3), (64, 128, 32, 4, 3)),
        *((64, 64, 64, 4, 4), (128, 256, 32, 8, 3)),
    )
)
DEPTHWISE = tuple(
    depthwise.DepthwiseTile(*sizes)
    for sizes in (
        *((1, 64, 32, 4), (1, 32, 64, 4), (1, 128, 32, 4), (2, 32, 32, 4), (2, 64, 32, 4)),
        *((2, 32, 64, 4), (2, 16, 64, 4), (2, 16, 32, 2), (2, 64, 32, 8), (2, 16, 128, 4)),
    )
)
PAIRS = (  # of two convolutions in one kernel
    *(Tile(128, 128, 64, 8, stages, 128) for stages in (2, 3)),
    *(Tile(128, 128, 64, 8, 3), Tile(64, 128, 64, 4, 3), Tile(64, 128, 64, 4, 3, 168)),
    *(Tile(128, 64, 64, 8, 3), Tile(128, 128, 64, 4, 3), Tile(128, 128, 32, 8, 4)),
)
STEMS = tuple({"PIXELS": pixels, "WARPS": warps} for pixels in (64, 128, 256) for warps in (4, 8))
OTHERS: dict[str, tuple[JsonDict, ...]] = {  # constants of the other kernels' modules
    "stem": tuple({"ROWS": rows, "WARPS": warps} for rows in (64, 128, 256) for warps in (4, 8)),
    "sampled": tuple(
        {"POINTS": points, "VIEWS": views, "WARPS": 4}
        for points in (128, 256, 512)
        for views in (1, 4, 16)
    ),
    "with_whole": tuple({"WARPS": warps, "FEW_WARPS": warps} for warps in (2, 4, 8)),
    "attended": tuple({"WARPS": warps} for warps in (1, 2, 4)),
    "head": tuple({"ROWS": rows} for rows in (32, 64, 128)),
}


class Trial:
    """The parts, each a generator of results under a name."""

    def __init__(self, out: Path, seconds: float) -> None:
        self.out, self.until = out, time.monotonic() + seconds
        self.results: JsonDict = {"device": _device_name()}

    def late(self) -> bool:
        return time.monotonic() > self.until

    def part(self, name: str, rows: Callable[[], Iterator[tuple[str, Any]]]) -> None:
        """Runs one part, and stores what it gave before it failed or the time was up."""
        found: JsonDict = {}
        self.results[name] = found
        started = time.monotonic()
        try:
            if not self.late():
                for row, value in rows():
                    found[row] = value
                    self._write()
                    if self.late():
                        break
            if self.late():
                found["stopped"] = "the time was up"
        except Exception as error:  # reported; the other parts run anyway
            found["error"] = f"{type(error).__name__}: {error}"[:600]
        found["spent_s"] = round(time.monotonic() - started, 1)
        give_back()
        print(name, json.dumps(found), flush=True)
        self._write()

    def _write(self) -> None:
        self.out.write_text(json.dumps(self.results, indent=1) + "\n", encoding="utf-8")


@torch.inference_mode()
def differences(model: str) -> Iterator[tuple[str, Any]]:
    """How far the logits are from those in float32, as a share of their deviation."""
    new = network_of(model, torch.float16)
    exact_network = _plain(network_of(model, torch.float32))
    yield "form", type(getattr(new, "ring", new)).__name__
    for count in (COMPARED, 3, 1):
        views = _views(new, count)
        exact = exact_network(views.float())
        for name, call in (("plain", _plain(new)), ("kernels", new)):
            logits, offsets = call(views)
            yield (
                f"{name}, {count} views",
                {
                    "largest": round(float((logits - exact[0]).abs().max() / exact[0].std()), 5),
                    "typical": _typical(logits, exact[0]),
                    "offsets": round(float((offsets - exact[1]).abs().max()), 5),
                    "same_bin": _same(logits, exact[0]),
                },
            )


@torch.inference_mode()
def times(model: str) -> Iterator[tuple[str, Any]]:
    new = network_of(model, torch.float16)
    forms = {"kernels": new, "plain": _plain(new)}
    for batch in BATCHES:
        views = _views(new, batch)
        for name, network in forms.items():
            yield f"{name}, batch {batch}", _us(captured(_call(network, views)))
            give_back()
    views = _views(new, BATCHES[0])
    yield "kernels of a batch", kernels(_call(new, views), 12)


@torch.inference_mode()
def compiled_times(model: str) -> Iterator[tuple[str, Any]]:
    for batch in BATCHES:
        network = torch.compile(network_of(model, torch.float16), dynamic=False)
        views = _views(network_of(model, torch.float16), batch)
        network(views)
        wait()
        yield f"compiled kernels, batch {batch}", _us(captured(_call(network, views)))
        give_back()


@torch.inference_mode()
def layers(
    model: str, tried: bool, batch: int, warm: tuple[int, int] | None = None
) -> Iterator[tuple[str, Any]]:
    """Each kernel alone, as it is, or with other tiles as well: µs, TFLOP/s, and GB/s.

    To warm up, each is only compiled, and of all of them only those with number `warm[0]` modulo
    `warm[1]`.
    """
    variants = (
        (number, call, changes)
        for number, call in enumerate(_calls(model, batch))
        for changes in ({}, *(call.others() if tried else ()))
    )
    for order, (number, call, changes) in enumerate(variants):
        if warm is None or order % warm[1] == warm[0]:
            try:
                with patch.multiple(call.module, **changes) if changes else nullcontext():
                    spent = back_to_back(captured(call), SHORT) if warm is None else _once(call)
                operations, moved = call.operations / spent / 1e12, call.bytes / spent / 1e9
                value: Any = [round(1e6 * spent, 1), round(operations), round(moved)]
            except Exception as error:  # of this tile: too large, say
                value = f"{type(error).__name__}: {error}"[:120]
            yield f"{number} {call.text} {_named(changes)}", value
            give_back()


def _once(call: Callable[[], Any]) -> float:
    started = time.monotonic()
    call()
    return time.monotonic() - started


class _Recorded:
    """One call of a kernel in a network."""

    def __init__(self, name: str, module: Any, args: Any, options: JsonDict, y: Any) -> None:
        self.name, self.module, self.args, self.options = name, module, args, options
        tensors = [value for value in _flat((args, options)) if isinstance(value, Tensor)]
        shapes = [tuple(value.shape) for value in tensors if value.ndim > 1]
        self.text = f"{name} {' '.join(str(shape).replace(' ', '') for shape in shapes)}"
        taps = [shape for shape in shapes if len(shape) == 3]
        self.maps = taps[-1][2] if taps else 0
        self.operations = 0
        self.bytes = sum(given.nbytes for given in (*tensors, *_flat(y)))
        if name in ("convolution", "pair"):
            features = next(_flat(y))
            rows = features.numel() // features.shape[3]
            self.operations = 2 * rows * sum(a * b * c for a, b, c in taps)

    def __call__(self) -> Any:
        return getattr(self.module, self.name)(*self.args, **self.options)

    def others(self) -> list[JsonDict]:
        """Other settings of its module."""
        if self.name == "pair":
            return [{"TILES": {self.maps: tile}} for tile in PAIRS]
        if self.name == "product":
            return [{"tile_for": lambda *_, tile=tile: tile} for tile in PRODUCTS]
        if self.name == "depthwise":
            return [{"TILES": dict.fromkeys(depthwise.TILES, tile)} for tile in DEPTHWISE]
        if self.name == "convolution":
            table = TILES[64 if self.maps <= 64 else 256]
            return [{"tile_for": lambda *_, tile=tile: tile} for tile in table]
        if self.module is view_stem:
            return list(STEMS)
        return list(OTHERS[self.name])


def _named(changes: JsonDict) -> str:
    if not changes:
        return "(own)"
    tiles = [changes["tile_for"]()] if "tile_for" in changes else changes.get("TILES", {}).values()
    return " ".join(dict.fromkeys(str(tuple(tile)) for tile in tiles)) or str(changes)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from _flat(part)
    elif isinstance(value, dict):
        yield from _flat(tuple(value.values()))
    else:
        yield value


def _calls(model: str, batch: int) -> list[_Recorded]:
    """The different calls of kernels in a network."""
    network = network_of(model, torch.float16)
    found: dict[str, _Recorded] = {}

    def recorder(name: str, module: Any) -> Callable[..., Any]:
        usual = getattr(module, name)

        def record(*args: Any, **options: Any) -> Any:
            y = usual(*args, **options)
            call = _Recorded(name, module, args, options, y)
            found.setdefault(call.text, call)
            return y

        return record

    lite = model in ("general", "light")
    user = convolutional_kernels if lite else ring_kernels
    with ExitStack() as stack:
        for name, module in (CONVOLUTIONAL if lite else KERNELS).items():
            # As the network knows them: by their names, or those of their modules.
            place = user if hasattr(user, name) else module
            stack.enter_context(patch.object(place, name, recorder(name, module)))
        network(_views(network, batch))
    return list(found.values())


def _plain(network: Any) -> Callable[..., Any]:
    """The same network without the kernels."""

    def plain(views: Tensor) -> Any:
        with without_kernels():
            return network(views)

    return plain


def _views(network: Any, count: int) -> Tensor:
    config = network.config
    shape = (count, config.channels, config.view_size, config.view_size)
    torch.manual_seed(0)
    return torch.rand(shape, device=device(), dtype=torch.float16)


def _call(network: Callable[..., Any], views: Tensor) -> Callable[[], object]:
    return lambda: network(views)


def _us(replay: Callable[[], object]) -> float:
    return float(f"{1e6 * back_to_back(replay):.4g}")


def _typical(logits: Tensor, exact: Tensor) -> float:
    return round(float((logits - exact).square().mean().sqrt() / exact.std()), 5)


def _same(logits: Tensor, exact: Tensor) -> float:
    return round(float((logits.argmax(-1) == exact.argmax(-1)).float().mean()), 4)


def _device_name() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--compile", action="store_true", help="also time the compiled networks")
    parser.add_argument("--tiles", action="store_true", help="also time other tiles")
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--layers-batch", type=int, default=BATCHES[0])
    parser.add_argument("--warm", type=int, nargs=2, metavar=("PART", "OF"), help="only compile")
    parser.add_argument(
        "--parts", nargs="*", default=("differences", "times", "compiled", "layers")
    )
    options = parser.parse_args()
    trial = Trial(options.out, options.seconds)
    parts: list[tuple[str, Callable[..., Iterator[tuple[str, Any]]], tuple[Any, ...]]] = [
        ("differences", differences, ()),
        ("times", times, ()),
        *([("compiled", compiled_times, ())] if options.compile else []),
        ("layers", layers, (options.tiles, options.layers_batch, options.warm)),
    ]
    for name, rows, settings in parts:
        if name not in options.parts:
            continue
        for model in options.models:
            trial.part(f"{name}, {model}", lambda r=rows, m=model, s=settings: r(m, *s))  # type: ignore[misc]


if __name__ == "__main__":
    main()
