"""Sessions of ONNX Runtime, set up in one way for every model."""

from __future__ import annotations

from typing import Any

from radialbeams import zoo
from radialbeams.cards import Card

FLOATS = "tensor(float)"


def open_session(content: bytes, threads: int) -> Any:
    """A session that computes on the CPU; `threads` 0 lets the runtime choose."""
    # Only here: it is most of the import time, and `--help` needs none of it.
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Its threads sleep while there is nothing to do: awake, they take the cores from other callers.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4  # whoever calls reports what fails, once
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def model_session(model: zoo.Model, threads: int) -> Any:
    """Of a model whose bytes, input and outputs are those that its card names."""
    content = zoo.verified_onnx(model)
    try:
        session = open_session(content, threads)
    except Exception as error:  # the runtime's own errors have no common class
        raise zoo.DamagedModel(
            f"{model.onnx} has the bytes that its card names, but they are no ONNX model that "
            "runs here. Export it again, or update onnxruntime."
        ) from error
    _check_signature(model, session)
    return session


def _check_signature(model: zoo.Model, session: Any) -> None:
    """The graph declares the input and the outputs that the card describes."""
    network, widths = model.card.network, output_widths(model.card)
    shape = (network.channels, network.view_size, network.view_size)
    expected = _signature(["views"], [shape], [(width,) for width in widths])
    inputs, outputs = session.get_inputs(), session.get_outputs()
    found = _signature(
        [node.name for node in inputs],
        [tuple(node.shape[1:]) for node in inputs],
        [tuple(node.shape[1:]) for node in outputs],
    )
    fixed = any(not node.shape or isinstance(node.shape[0], int) for node in (*inputs, *outputs))
    if found != expected or fixed or {node.type for node in (*inputs, *outputs)} != {FLOATS}:
        raise zoo.DamagedModel(
            f"{model.onnx} is an ONNX model of something else: expected {expected}, as its "
            f"card says, of floats and for any number of views; got {found}."
        )


def output_widths(card: Card) -> list[int]:
    """Of the outputs: logits and offsets for each beam or bin, or one unit vector."""
    network = card.network
    return [network.num_bins] * 2 if network.reading == "posterior" else [2]


def _signature(names: list[str], given: list[Any], out: list[Any]) -> str:
    return f"input {', '.join(names)} of {given} and outputs of {out}"
