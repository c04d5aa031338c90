"""Standard streams, which may be closed from the start or lose their reader at any time."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import TextIO


def prepare() -> None:
    """Opens closed streams, so that no file opened later gets their descriptor and output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor, which is this one
    sys.stdin = sys.stdin or open(0)  # noqa: SIM115 - open until the end
    sys.stdout = sys.stdout or open(1, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w")  # noqa: SIM115
    # A character that the terminal cannot encode must not end the program.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def print_message(line: str) -> None:
    """Prints to standard error, unless its reader has gone."""
    _print(line, sys.stderr)


def print_data(line: str) -> None:
    """Prints to standard output, unless its reader has gone; the work continues either way."""
    _print(line, sys.stdout)


def silence(stream: TextIO) -> None:
    """Redirects a stream whose reader has gone, so that Python does not try to flush it again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def _print(line: str, stream: TextIO) -> None:
    try:
        print(line, file=stream, flush=True)
    except BrokenPipeError:
        silence(stream)
