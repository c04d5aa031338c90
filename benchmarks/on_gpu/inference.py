"""One model in one precision at several batch sizes: seconds, and how far from the floor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from benchmarks.on_gpu import floor
from benchmarks.on_gpu.models import network_of
from benchmarks.on_gpu.photos import photos
from benchmarks.on_gpu.timing import (
    back_to_back,
    captured,
    device,
    give_back,
    kernels,
    wait,
    waited_for,
)
from radialbeams.nn.kernels.using import without_kernels
from radialbeams.stored import JsonDict

BATCHES = (1, 64, 4096)
MOST_FLOORS, MOST_US = 3, 150  # at the largest batch; ring.coil100, one view, in either precision
PROFILED = 40
COMPARED = 64  # views
COMPILING = 85  # seconds after which nothing more is compiled
PRECISIONS = {"float": torch.float32, "half": torch.float16}


class Inference:
    """Compiled in `prepare`, so that all parts can compile at once; timed in `measure`."""

    def __init__(
        self,
        model: str,
        precision: str,
        batches: tuple[int, ...] = BATCHES,
        *,
        compiles: bool = True,
    ) -> None:
        self.model, self.dtype, self.batches = model, PRECISIONS[precision], batches
        self.compiles = compiles
        self.plain = network_of(model, self.dtype)
        config = self.plain.config
        shape = (2, config.channels, config.view_size, config.view_size)
        # Not in inference mode, where layers cannot be distinguished.
        self.layers = floor.layers(network_of(model, torch.float32, "cpu"), torch.rand(shape))
        self.compiled: dict[int, Callable[..., Any]] = {}
        self.errors: dict[str, str] = {}

    @torch.inference_mode()
    def prepare(self) -> None:
        started = time.monotonic()
        for batch in reversed(self.batches):  # the largest matters most
            self.plain(self._views(batch))  # its kernels are made for its sizes
            if not self.compiles:
                continue
            if time.monotonic() - started > COMPILING:
                self.errors[f"compiled, batch {batch}"] = "no time was left to compile it"
                continue
            network = torch.compile(network_of(self.model, self.dtype), dynamic=False)
            try:
                network(self._views(batch))
                wait()
                self.compiled[batch] = network
            except Exception as error:  # reported; the plain network is measured anyway
                self.errors[f"compiled, batch {batch}"] = repr(error)[:300]

    @torch.inference_mode()
    def measure(self) -> Iterator[JsonDict]:
        """The results so far, after every batch size."""
        speed = floor.speeds(self.dtype)
        result: JsonDict = {
            "model": self.model,
            "copy_gb_per_second": round(speed.bytes_per_second / 1e9),
            "product_tflops": round(speed.operations_per_second / 1e12, 1),
            "errors": self.errors,
        }
        result["against_float"] = self._difference()
        result["operations_each"] = sum(layer.operations for layer in self.layers)
        for batch in self.batches:
            least = floor.seconds(self.layers, batch, self.dtype.itemsize, speed)
            row: JsonDict = {f"floor_{name}_us": _us(value) for name, value in least.items()}
            views = self._views(batch)
            for name, network in self._forms(batch).items():
                row[name] = _timed(network, views, least["layers"])
                give_back()
                result[f"batch {batch}"] = row
                yield result
        largest = self.batches[-1]
        forms = self._forms(largest)
        fastest = min(forms, key=lambda name: result[f"batch {largest}"][name]["us"])
        result["fastest"] = fastest
        result["kernels"] = kernels(_call(forms[fastest], self._views(largest)), PROFILED)
        yield result

    def _forms(self, batch: int) -> dict[str, Callable[..., Any]]:
        """The variants of computing a batch."""
        forms: dict[str, Callable[..., Any]] = {"plain": self.plain}
        if batch in self.compiled:
            forms["compiled"] = self.compiled[batch]
        return forms

    def _difference(self) -> dict[str, float]:
        """How far the logits are from exact float32, as a share of their deviation, on photos."""
        config = self.plain.config
        views = photos(COMPARED, config.channels, config.view_size).to(device())
        convolutions, products = torch.backends.cudnn, torch.backends.cuda.matmul
        usual = convolutions.allow_tf32, products.allow_tf32
        convolutions.allow_tf32 = products.allow_tf32 = False
        with without_kernels():
            exact = network_of(self.model, torch.float32)(views)[0]
        convolutions.allow_tf32, products.allow_tf32 = usual
        logits = self.plain(views.to(self.dtype))[0].float()
        apart = (logits - exact) / exact.std()
        return {
            "largest": round(float(apart.abs().max()), 5),
            "typical": round(float(apart.square().mean().sqrt()), 5),
            "same_bin": round(float((logits.argmax(-1) == exact.argmax(-1)).float().mean()), 4),
        }

    def _views(self, batch: int) -> Tensor:
        side, channels = self.plain.config.view_size, self.plain.config.channels
        return torch.rand(batch, channels, side, side, device=device(), dtype=self.dtype)


def _timed(network: Callable[..., Any], views: Tensor, least: float) -> JsonDict:
    replay = captured(_call(network, views))
    spent = back_to_back(replay)
    return {
        "us": _us(spent),
        "until_answer_us": _us(waited_for(replay, 30)),
        "views_per_second": round(len(views) / spent),
        "times_floor": round(spent / least, 2),
    }


def _call(network: Callable[..., Any], views: Tensor) -> Callable[[], object]:
    return lambda: network(views)


def _us(value: float) -> float:
    return float(f"{1e6 * value:.4g}")
