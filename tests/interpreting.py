"""Runs a program with Triton's interpreter, which needs no GPU."""

from __future__ import annotations

import os
import subprocess
import sys


def interpreted(program: str) -> None:
    """Runs a Python program in a process of its own: the interpreter is chosen on import."""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
