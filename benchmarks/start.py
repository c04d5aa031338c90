"""What the package costs before it does anything: import, help, size on the disk, memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import radialbeams
from benchmarks.clock import compared, in_turns
from radialbeams.stored import JsonDict

COMMAND = "from radialbeams.cli import run; run()"
PEAK = (
    "print(next(int(line.split()[1]) // 1024 for line in open('/proc/self/status') "
    "if line.startswith('VmHWM')))"
)


def measure(quick: bool) -> JsonDict:
    lines = {
        "bare Python": ("pass",),
        "import radialbeams": ("import radialbeams",),
        "radialbeams --help": (COMMAND, "--help"),
    }
    calls = {name: lambda line=line: _python(*line) for name, line in lines.items()}
    groups: JsonDict = {
        "start": compared(in_turns(calls, 3 if quick else 7), "bare Python"),
        "megabytes": {
            "on the disk, models included": _megabytes(Path(radialbeams.__file__).parent),
            "memory of bare Python": int(_python(PEAK)),
            "memory with a model": int(
                _python(
                    "import radialbeams as r; r.Canonicalizer('ring.coil100', threads=1); " + PEAK
                )
            ),
        },
    }
    return groups


def _python(*line: str) -> str:
    command = [sys.executable, "-c", *line]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _megabytes(folder: Path) -> float:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return round(sum(os.path.getsize(path) for path in files) / 1e6, 1)
