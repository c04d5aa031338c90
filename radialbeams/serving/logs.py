"""Logs one JSON object per line to standard error; never the name or content of a file."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import TextIO


class Log:
    """Writes to standard error, or to a stream that a test reads."""

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


class Library(logging.Handler):
    """Forwards errors that libraries log, with their tracebacks, in the same format."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.ERROR)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else None
        self._log.event("error", logger=record.name, message=record.getMessage(), trace=trace)
