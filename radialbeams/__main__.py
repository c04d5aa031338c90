"""`python -m radialbeams`: the same as the command, which begins here."""

from __future__ import annotations

import os
import sys
import time
from typing import NoReturn

# Before the other modules are imported, which takes a while: a run that ends meanwhile may have
# turned the files that this one is given.
STARTED = time.time_ns()


def run() -> NoReturn:
    try:
        from radialbeams.cli import run as command

        command(STARTED)
    except KeyboardInterrupt:  # while the modules are imported, or at the very end
        os.write(2, b"radialbeams: stopped.\n")
        sys.exit(130)  # which shells expect after Ctrl-C


if __name__ == "__main__":
    run()
