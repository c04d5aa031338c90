"""Switches off the telemetry of onnxruntime before anything can import it.

While they are imported, newer versions of onnxruntime write an identifier and a queue of events
into the user's cache, and send them later. Only this environment variable, set before the import,
prevents that. Worker processes inherit it.
"""

from __future__ import annotations

import os
import sys

SWITCH = "ORT_DISABLE_TELEMETRY"


def switch_off() -> None:
    """If the user's program has already imported onnxruntime, at least no more is queued."""
    os.environ[SWITCH] = "1"
    runtime = sys.modules.get("onnxruntime")
    if runtime is not None:
        runtime.disable_telemetry_events()
