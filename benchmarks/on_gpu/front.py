"""The canonicaliser in front of EfficientNet-Lite0, as a share of the classifier's time.

Both get images of 224 pixels in batches of 64, in the same precision, with their norms folded,
captured as CUDA graphs, and both compiled or both not. In front of a compiled classifier, the
canonicaliser is also measured without compiling: its own kernels may be the faster form. The
weights of the classifier are random: they do not change its time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.on_gpu.models import MODELS, front_of
from benchmarks.on_gpu.timing import captured, device, in_turns, kernels, wait
from radialbeams.front.folding import folded
from radialbeams.nn.convolutional import Convolutional, ConvolutionalConfig
from radialbeams.stored import JsonDict

SIZE, BATCH, ROUNDS = 224, 64, 40
COMPILING = 80  # seconds in which everything has to be compiled
COMPILED_IN = {"general": 40, "light": 40}  # seconds that a model takes, at most
CLASSIFIER = "EfficientNet-Lite0"
MOST = {"ring.coil100": 0.15, "ring": 0.30}  # in half precision, the classifier compiled
PLAIN = ", not compiled"


class Front:
    """Compiled in `prepare`; timed in `measure`."""

    def __init__(
        self, precision: str, compiled: bool, batch: int = BATCH, *, compiles: bool = True
    ) -> None:
        self.dtype = torch.float16 if precision == "half" else torch.float32
        self.compiled, self.batch = compiled, batch  # the classifier is compiled
        self.models = MODELS if compiles or not compiled else ()  # likewise
        self.calls: dict[str, Callable[[], object]] = {}
        self.errors: dict[str, str] = {}

    @torch.inference_mode()
    def prepare(self) -> None:
        started = time.monotonic()
        images = torch.rand(self.batch, 3, SIZE, SIZE, device=device(), dtype=self.dtype)
        self._add(CLASSIFIER, _classifier(self.dtype), images.to(memory_format=torch.channels_last))
        for name in MODELS:
            if self.compiled:
                self._add(name + PLAIN, front_of(name, self.dtype), images, compiled=False)
        for name in self.models:
            needed = COMPILED_IN.get(name, 25) if self.compiled else 0
            if time.monotonic() - started + needed > COMPILING:
                self.errors[name] = "no time was left to compile it"
                continue
            self._add(name, front_of(name, self.dtype), images)

    def _add(self, name: str, module: Any, images: Tensor, *, compiled: bool | None = None) -> None:
        """Compiles a module, unless told otherwise, and runs it once."""
        if self.compiled if compiled is None else compiled:
            module = torch.compile(module, dynamic=False)
        try:
            call = _call(module, images)
            call()
            wait()
            self.calls[name] = call
        except Exception as error:  # reported; the others are measured
            self.errors[name] = repr(error)[:300]

    @torch.inference_mode()
    def measure(self) -> Iterator[JsonDict]:
        seconds = in_turns({name: captured(call) for name, call in self.calls.items()}, ROUNDS)
        own = seconds.get(CLASSIFIER)
        result: JsonDict = {
            "batch": self.batch,
            "errors": self.errors,
            "us": {name: round(1e6 * spent, 1) for name, spent in seconds.items()},
        }
        if own:
            rest = {name: spent / own for name, spent in seconds.items() if name != CLASSIFIER}
            result["share"] = {name: round(value, 4) for name, value in rest.items()}
        yield result
        result["kernels"] = {name: kernels(call) for name, call in self.calls.items()}
        yield result


def _classifier(dtype: torch.dtype) -> nn.Module:
    config = ConvolutionalConfig(variant="lite0", view_size=SIZE, num_bins=500)  # 1,000 outputs
    network = folded(Convolutional(config).eval()).to(dtype)
    return network.to(device(), memory_format=torch.channels_last)  # type: ignore[call-overload]


def _call(module: Any, images: Tensor) -> Callable[[], object]:
    return lambda: module(images)
