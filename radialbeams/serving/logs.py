"""One JSON object per line on standard error; never a file's name or content."""

from __future__ import annotations

import json
import sys
import time
from typing import TextIO


class Log:
    def __init__(self, *, requests: bool = True, stream: TextIO | None = None) -> None:
        self._requests, self._stream = requests, stream

    def event(self, event: str, **fields: object) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        line = json.dumps({"time": f"{stamp}Z", "event": event, **fields})
        stream = self._stream or sys.stderr
        stream.write(line + "\n")
        stream.flush()

    def request(self, **fields: object) -> None:
        if self._requests:
            self.event("request", **fields)
