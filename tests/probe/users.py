"""Running a command as a user without rights."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache

from .command import environment

NOBODY = 65534


@cache
def as_nobody() -> tuple[str, ...] | None:
    """The words before a command that runs it as nobody; None where that is not possible."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return None
    words = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    # Workers are started by the same interpreter, which may lie where nobody may not enter.
    script = (
        "import subprocess, sys, onnxruntime; subprocess.run([sys.executable, '-V'], check=True)"
    )
    try_out = [*words, sys.executable, "-c", script]
    done = subprocess.run(try_out, env=environment(), capture_output=True, check=False, cwd="/")
    return words if done.returncode == 0 else None
