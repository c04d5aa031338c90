"""The command line: parses, calls, prints. Standard output is data, standard error is talk.

Nothing heavy is imported before a verb needs it, so that `--help` answers at once.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import NoReturn

# Importing the verbs is what adds them to the command, in this order.
from radialbeams.cli import experiments, files, shipped, streams, training
from radialbeams.cli.app import app

__all__ = ["app", "experiments", "files", "main", "run", "shipped", "streams", "training"]


def main(argv: list[str] | None = None) -> int:
    """0 done, 1 failed with a sentence on standard error, 2 wrong usage."""
    try:
        code = _exit_code(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        streams.silence(sys.stdout)
        return 1
    return code


def _exit_code(argv: list[str] | None) -> int:
    try:
        app(argv, prog_name="radialbeams")
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else 1
    except BrokenPipeError:
        raise
    except (ValueError, OSError, ArithmeticError) as error:
        if os.environ.get("RADIALBEAMS_TRACEBACK"):
            raise
        streams.say(f"radialbeams: {error}")
        return 1
    return 0


def run() -> NoReturn:
    streams.prepare()
    # A warning is for people: the sentence, without the line of code that gave it.
    warnings.showwarning = lambda message, *_: streams.say(f"radialbeams: {message}")
    sys.exit(main())
