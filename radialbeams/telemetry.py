"""The runtime's own reports to its vendor: off, before anything can import it.

Newer versions of onnxruntime write an identifier and a queue of events into the user's cache
while they are imported, and send them later. Only this variable, set before the import, stops
that. The processes that a run starts inherit it.
"""

from __future__ import annotations

import os
import sys

SWITCH = "ORT_DISABLE_TELEMETRY"


def switch_off() -> None:
    """Also where a program of the user's imported onnxruntime first: then no more is queued."""
    os.environ[SWITCH] = "1"
    runtime = sys.modules.get("onnxruntime")
    if runtime is not None:
        runtime.disable_telemetry_events()
