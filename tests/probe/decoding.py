"""Damaged files read and turned by the library, in a process that may die of it.

Prints a line before each file, and what was wrong after it: one JSON object each.
"""

from __future__ import annotations

import faulthandler
import json
import re
import sys
import time
import warnings

from radialbeams.images import ImageError, encode, read, read_small, turn

from .damage import damaged

LIMIT = 5.0  # seconds of computing for one small file
PATIENCE = 60  # seconds after which a decoder that never returns ends the process


def problem_with(number: int, seed: int) -> str | None:
    """What is wrong with how the library meets one file; None: nothing."""
    _, _, data = damaged(number, seed)
    start = time.process_time()  # a busy machine is not the file's fault
    try:
        picture = read(data, first_frame=number % 2 == 0)
        read_small(data, 16, first_frame=True)
        encode(turn(picture, 33.3))
    except ImageError as error:
        if not re.fullmatch(r"[A-Z].{15,}[.]", str(error)):
            return f"no sentence: {error!s}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    seconds = time.process_time() - start
    return f"took {seconds:.1f} s" if seconds > LIMIT else None


def main(first: int, last: int, seed: int) -> None:
    warnings.simplefilter("ignore")  # Pillow describes what it meets
    for number in range(first, last):
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        print(json.dumps({"at": number}), flush=True)
        if problem := problem_with(number, seed):
            print(json.dumps({"number": number, "problem": problem}), flush=True)
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
