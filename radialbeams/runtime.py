"""Sessions of ONNX Runtime, with the same settings for every model."""

from __future__ import annotations

from typing import Any

from radialbeams import zoo
from radialbeams.cards import Card

FLOATS = "tensor(float)"


def open_session(content: bytes, threads: int) -> Any:
    """A session that computes on the CPU; `threads` 0 lets the runtime choose."""
    # Imported here, because it is slow to import and `--help` does not need it.
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Idle threads must sleep: spinning, they would take the cores from other callers.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4  # the caller reports errors
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def model_session(model: zoo.Model, threads: int) -> Any:
    """A session of a model, after checking its bytes, input and outputs against its card."""
    content = zoo.verified_onnx(model)
    try:
        session = open_session(content, threads)
    except Exception as error:  # the runtime's own errors have no common class
        raise zoo.DamagedModel(
            f"{model.onnx} matches the sha256 on its card, but it is not an ONNX model that runs "
            "here. Export it again, or update onnxruntime."
        ) from error
    _check_signature(model, session)
    return session


def _check_signature(model: zoo.Model, session: Any) -> None:
    """Checks that the graph declares the input and the outputs on the card."""
    network, widths = model.card.network, output_widths(model.card)
    shape = (network.channels, network.view_size, network.view_size)
    expected = _signature(["views"], [shape], [(width,) for width in widths])
    inputs, outputs = session.get_inputs(), session.get_outputs()
    actual = _signature(
        [node.name for node in inputs],
        [tuple(node.shape[1:]) for node in inputs],
        [tuple(node.shape[1:]) for node in outputs],
    )
    fixed = any(not node.shape or isinstance(node.shape[0], int) for node in (*inputs, *outputs))
    if actual != expected or fixed or {node.type for node in (*inputs, *outputs)} != {FLOATS}:
        raise zoo.DamagedModel(
            f"{model.onnx} does not match its card: expected {expected}, of floats and for any "
            f"number of views; got {actual}. Export it again, weights and card together."
        )


def output_widths(card: Card) -> list[int]:
    """The widths of the outputs: logits and offsets for each bin, or one unit vector."""
    network = card.network
    return [network.num_bins] * 2 if network.reading == "posterior" else [2]


def _signature(names: list[str], shapes: list[Any], widths: list[Any]) -> str:
    return f"input {', '.join(names)} of {shapes} and outputs of {widths}"
