"""Export to ONNX: a file appears only if it computes what torch computes."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from radialbeams.nn.architectures import Network, architecture
from radialbeams.training.weights import write_whole

if TYPE_CHECKING:
    import onnx

PARITY_BATCHES = (1, 7, 128)
PARITY_TOLERANCE = 1e-4
SMALLEST_STORED = 1024  # numbers; below it nothing is gained


class ParityError(ValueError):
    """The exported file and torch disagree."""


def export_onnx(model: Network, path: Path, *, tolerance: float = PARITY_TOLERANCE) -> float:
    """Input `views` (N, C, S, S) in [0, 1], outputs as the network names them.

    Returns the largest difference. Any batch size runs. Nothing is written when torch and ONNX
    Runtime differ by more than `tolerance` at any of the batches 1, 7 and 128.
    """
    model = model.cpu().eval()
    return write_agreeing(
        path,
        partial(_write_graph, model),
        partial(parity, model),
        tolerance,
        "Check the weights for NaN",
    )


def write_agreeing(
    path: Path,
    write_graph: Callable[[Path], None],
    difference: Callable[[Path], float],
    tolerance: float,
    advice: str,
) -> float:
    """A file that differs from torch by more than `tolerance` never takes its place."""
    worst = 0.0

    def write(part: Path) -> None:
        nonlocal worst
        write_graph(part)
        worst = difference(part)
        if not worst <= tolerance:  # also refuses NaN
            raise ParityError(
                f"Expected ONNX and torch to agree within {tolerance:g}; they differ by "
                f"{worst:g}, so {path.name} was not written. {advice}, or "
                "report this with the versions of torch and onnxruntime."
            )

    write_whole(path, write)
    return worst


def _write_graph(model: Network, path: Path) -> None:
    config = model.config
    example = torch.zeros(1, config.channels, config.view_size, config.view_size)
    model = architecture(config).exported(model)
    write_onnx(model, example, path, "views", model.outputs)


def write_onnx(
    model: nn.Module,
    example: Tensor,
    path: Path,
    given: str,
    outputs: Sequence[str],
    free: Sequence[str] = (),
) -> None:
    """One input, for any number of what `example` (1, …) has one of; `free` names the last
    dimensions whose size may be any, too."""
    names = ("batch", *("" for _ in range(example.ndim - 1 - len(free))), *free)
    any_of = {place: torch.export.Dim(name) for place, name in enumerate(names) if name}
    exporter = logging.getLogger("torch.onnx")
    level = exporter.level
    exporter.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                model,
                (torch.cat((example, example)),),  # the exporter takes a size of 1 for a constant
                str(path),
                dynamo=True,
                input_names=[given],
                output_names=list(outputs),
                dynamic_shapes={given: any_of},
                external_data=False,
                optimize=False,  # later, see `_store_small`
                verbose=False,
            )
            _store_small(path, set(model.state_dict()))
    finally:
        exporter.setLevel(level)


def _store_small(path: Path, weights: Collection[str]) -> None:
    """Stores weights that 16 bits hold exactly in 16 bits; they are computed with in 32.

    A model whose weights were rounded to half precision takes half the room, and nothing else
    changes: ONNX Runtime widens them once, when it loads the file.
    """
    import onnx
    from onnxscript import optimizer

    model = onnx.load(str(path))
    held = _taken_out(model, weights)
    model = optimizer.optimize(model)
    _put_back(model, held)
    for node in model.graph.node:  # the lines of code that made it, of no use to anyone
        del node.metadata_props[:]
    onnx.save(model, str(path))


def _taken_out(model: onnx.ModelProto, weights: Collection[str]) -> list[onnx.TensorProto]:
    """The weights, which become inputs of the graph for a while.

    Otherwise the optimizer would fold norms into kernels, which then no longer fit 16 bits and are
    no longer the network's own.
    """
    from onnx import helper

    graph = model.graph
    held = [tensor for tensor in graph.initializer if tensor.name in weights]
    kept = [tensor for tensor in graph.initializer if tensor.name not in weights]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    graph.input.extend(
        helper.make_tensor_value_info(one.name, one.data_type, list(one.dims)) for one in held
    )
    return held


def _put_back(model: onnx.ModelProto, held: Sequence[onnx.TensorProto]) -> None:
    graph = model.graph
    names = {tensor.name for tensor in held}
    used = {name for node in graph.node for name in node.input}
    inputs = [one for one in graph.input if one.name not in names]
    del graph.input[:]
    graph.input.extend(inputs)
    casts = []
    for tensor in held:
        if tensor.name in used:
            small, cast = _halved(tensor)
            graph.initializer.append(small)
            casts += cast
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)


def _halved(tensor: onnx.TensorProto) -> tuple[onnx.TensorProto, list[onnx.NodeProto]]:
    """The tensor in 16 bits with the node that widens it, or as it is where that would round."""
    from onnx import TensorProto, helper, numpy_helper

    values = numpy_helper.to_array(tensor)
    if values.dtype != np.float32 or values.size < SMALLEST_STORED:
        return tensor, []
    with np.errstate(over="ignore"):
        small = values.astype(np.float16)
    if not np.array_equal(small.astype(np.float32), values):
        return tensor, []
    stored = numpy_helper.from_array(small, f"{tensor.name}.half")
    return stored, [helper.make_node("Cast", [stored.name], [tensor.name], to=TensorProto.FLOAT)]


def parity(model: Network, path: Path) -> float:
    """The largest difference of any output between torch and the file, on noise."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    generator = torch.Generator().manual_seed(0)
    worst = 0.0
    for batch in PARITY_BATCHES:
        views = torch.rand(batch, *_view_shape(model), generator=generator)
        with torch.inference_mode():
            outputs = model(views)
        expected = (outputs,) if isinstance(outputs, torch.Tensor) else outputs
        for want, found in zip(expected, session.run(None, {"views": views.numpy()}), strict=True):
            # A NaN must not hide behind max(), which may pass over it.
            difference = float(np.abs(found - want.numpy()).max())
            worst = difference if math.isnan(difference) else max(worst, difference)
            if math.isnan(worst):
                return worst
    return worst


def _view_shape(model: Network) -> tuple[int, int, int]:
    config = model.config
    return config.channels, config.view_size, config.view_size
