"""The command line. Data goes to standard output, messages go to standard error.

Nothing heavy is imported before a command needs it, so that `--help` is fast.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from typing import Any, NoReturn

import typer

# Importing these modules registers their commands, in this order.
from radialbeams.cli import files, models, reproduce, serving, streams, training
from radialbeams.cli.app import app
from radialbeams.cli.terminal import print_message
from radialbeams.escaping import shown

__all__ = ["app", "files", "main", "models", "reproduce", "run", "serving", "streams", "training"]

# Some versions of typer bundle click; this finds click's usage error in either case.
WrongUsage: Any = typer.BadParameter.__mro__[1]


def main(argv: list[str] | None = None, *, started: int | None = None) -> int:
    """Runs the command and returns its exit code: 0 done, 1 failed, 2 wrong usage, 130 stopped.

    `started` is when the command was started, in nanoseconds since the epoch.
    """
    try:
        code = _exit_code(argv, started)
        sys.stdout.flush()
    except BrokenPipeError:
        streams.silence(sys.stdout)
        return 1
    return code


def _exit_code(argv: list[str] | None, started: int | None) -> int:
    try:
        code = app(argv, prog_name="radialbeams", standalone_mode=False, obj=started)
        return code if isinstance(code, int) else 0
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else 1
    except WrongUsage as error:
        return _usage(error, sys.argv[1:] if argv is None else argv)
    except (KeyboardInterrupt, typer.Abort):
        print_message("radialbeams: stopped.")
        return 130  # which shells expect after Ctrl-C
    except BrokenPipeError:
        raise
    except (ValueError, OSError, ArithmeticError) as error:
        if os.environ.get("RADIALBEAMS_TRACEBACK"):
            raise
        print_message(f"radialbeams: {' '.join(str(error).splitlines())}")
        return 1


def _usage(error: Any, argv: list[str]) -> int:
    """Prints the usage error; for a command without arguments, this is its help."""
    if type(error).__name__ != "NoArgsIsHelpError":
        # Some versions of typer leave in the prefix of the library that checks the value.
        error.message = shown(error.message.removeprefix("Value error, "))
    if any(argument.startswith("-") and os.path.isfile(argument) for argument in argv):
        error.message += " Put -- before file names that begin with a dash."
    error.show()
    code: int = error.exit_code
    return code


def run(started: int | None = None) -> NoReturn:
    streams.prepare()
    # Print only the message of a warning, without the line of code that raised it.
    warnings.showwarning = lambda message, *_: print_message(f"radialbeams: {message}")
    sys.exit(main(started=started or time.time_ns()))
