"""Standard streams: they may be closed from the start, or nobody may read them any longer."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import TextIO


def prepare() -> None:
    """Opens what is closed, so that no file of ours takes its number and gets its output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    sys.stdin = sys.stdin or open(0)  # noqa: SIM115 - open until the end
    sys.stdout = sys.stdout or open(1, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w")  # noqa: SIM115
    # A letter that the terminal does not know is no reason to die.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def say(line: str) -> None:
    """On standard error, if anybody reads it."""
    _print(line, sys.stderr)


def tell(line: str) -> None:
    """On standard output, if anybody reads it; for what was done whether they do or not."""
    _print(line, sys.stdout)


def silence(stream: TextIO) -> None:
    """What Python still holds back for a reader who has gone must not be tried again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def _print(line: str, stream: TextIO) -> None:
    try:
        print(line, file=stream, flush=True)
    except BrokenPipeError:
        silence(stream)
