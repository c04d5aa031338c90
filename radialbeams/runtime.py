"""Sessions of ONNX Runtime, set up in one way for every model."""

from __future__ import annotations

from typing import Any


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
