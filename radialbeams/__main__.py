"""The entry point of the command, and of `python -m radialbeams`."""

from __future__ import annotations

import os
import sys
import time
from typing import NoReturn

# Taken before the slow imports: a run that ends during them may have turned the same files, and
# files that changed after this time are refused.
STARTED = time.time_ns()


def run() -> NoReturn:
    try:
        from radialbeams.cli import run as command

        command(STARTED)
    except KeyboardInterrupt:  # during the imports, or at the very end
        os.write(2, b"radialbeams: stopped.\n")
        sys.exit(130)  # the exit code that shells expect after Ctrl-C


if __name__ == "__main__":
    run()
