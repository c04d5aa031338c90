"""Export to ONNX. The file is written only if it computes what torch computes."""

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
SMALLEST_HALVED = 1024  # numbers; smaller tensors are not worth an extra node


class ParityError(ValueError):
    """The exported file and torch disagree."""


class ExportError(ValueError):
    """The installed versions of torch and onnxscript cannot export the network."""


def export_onnx(model: Network, path: Path, *, tolerance: float = PARITY_TOLERANCE) -> float:
    """Exports a network and returns the largest difference between torch and ONNX Runtime.

    The file takes `views` (N, C, S, S) in [0, 1] of any batch size; the outputs have the network's
    names. Nothing is written if the two differ by more than `tolerance` at batch size 1, 7 or 128.
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
    """Writes a graph to `path` unless it differs from torch by more than `tolerance`."""
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
    input_name: str,
    outputs: Sequence[str],
    free: Sequence[str] = (),
) -> None:
    """Exports a model with one input like `example` (1, …) and a free batch size.

    `free` names the last dimensions whose sizes are free as well.
    """
    names = ("batch", *("" for _ in range(example.ndim - 1 - len(free))), *free)
    dynamic = {axis: torch.export.Dim(name) for axis, name in enumerate(names) if name}
    exporter = logging.getLogger("torch.onnx")
    level = exporter.level
    exporter.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                model,
                (torch.cat((example, example)),),  # a size of 1 would become a constant
                str(path),
                dynamo=True,
                input_names=[input_name],
                output_names=list(outputs),
                dynamic_shapes={input_name: dynamic},
                external_data=False,
                optimize=False,  # `_store_small` does
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        reason = str(error).strip().splitlines()[0]
        raise ExportError(
            f"Expected torch {torch.__version__} to export the network to ONNX; it stopped with: "
            f"{reason} Install other versions of torch and onnxscript, and repeat the "
            "command: the trained weights are kept."
        ) from error
    finally:
        exporter.setLevel(level)
    _store_small(path, set(model.state_dict()))


def _store_small(path: Path, weights: Collection[str]) -> None:
    """Optimises the graph and stores weights in 16 bits where that is exact.

    This halves the file of a model whose weights were rounded to half precision. The results do
    not change: ONNX Runtime casts the weights to 32 bits once, when it loads the file.
    """
    import onnx
    from onnxscript import optimizer

    model = onnx.load(str(path))
    detached = _detach_weights(model, weights)
    model = optimizer.optimize(model)
    _attach_weights(model, detached)
    for node in model.graph.node:  # tracebacks of the exporter, useless to readers
        del node.metadata_props[:]
    onnx.save(model, str(path))


def _detach_weights(model: onnx.ModelProto, weights: Collection[str]) -> list[onnx.TensorProto]:
    """Turns the weights into inputs of the graph, and returns them.

    Otherwise the optimizer would fold norms into kernels, which would then no longer be exact in
    16 bits, nor equal to the network's weights.
    """
    from onnx import helper

    graph = model.graph
    detached = [tensor for tensor in graph.initializer if tensor.name in weights]
    constants = [tensor for tensor in graph.initializer if tensor.name not in weights]
    del graph.initializer[:]
    graph.initializer.extend(constants)
    graph.input.extend(
        helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
        for tensor in detached
    )
    return detached


def _attach_weights(model: onnx.ModelProto, detached: Sequence[onnx.TensorProto]) -> None:
    """Turns those inputs into stored weights again; unused ones are left out."""
    graph = model.graph
    names = {tensor.name for tensor in detached}
    used = {name for node in graph.node for name in node.input}
    inputs = [value for value in graph.input if value.name not in names]
    del graph.input[:]
    graph.input.extend(inputs)
    casts = []
    for tensor in detached:
        if tensor.name in used:
            small, cast = _halved(tensor)
            graph.initializer.append(small)
            casts += cast
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)


def _halved(tensor: onnx.TensorProto) -> tuple[onnx.TensorProto, list[onnx.NodeProto]]:
    """The tensor in 16 bits with the node that casts it back; unchanged where that would round."""
    from onnx import TensorProto, helper, numpy_helper

    values = numpy_helper.to_array(tensor)
    if values.dtype != np.float32 or values.size < SMALLEST_HALVED:
        return tensor, []
    with np.errstate(over="ignore"):
        small = values.astype(np.float16)
    if not np.array_equal(small.astype(np.float32), values):
        return tensor, []
    stored = numpy_helper.from_array(small, f"{tensor.name}.half")
    return stored, [helper.make_node("Cast", [stored.name], [tensor.name], to=TensorProto.FLOAT)]


def parity(model: Network, path: Path) -> float:
    """The largest difference between the outputs of torch and of the file, on noise."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    generator = torch.Generator().manual_seed(0)
    worst = 0.0
    for batch in PARITY_BATCHES:
        views = torch.rand(batch, *_view_shape(model), generator=generator)
        with torch.inference_mode():
            outputs = model(views)
        expected = (outputs,) if isinstance(outputs, torch.Tensor) else outputs
        actual = session.run(None, {"views": views.numpy()})
        for from_torch, from_file in zip(expected, actual, strict=True):
            # max() may ignore NaN, so NaN is checked for.
            difference = float(np.abs(from_file - from_torch.numpy()).max())
            worst = difference if math.isnan(difference) else max(worst, difference)
            if math.isnan(worst):
                return worst
    return worst


def _view_shape(model: Network) -> tuple[int, int, int]:
    config = model.config
    return config.channels, config.view_size, config.view_size
