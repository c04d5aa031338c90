"""No process of ours talks to a network or writes outside the places that it was given."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from radialbeams.demo import PICTURES

ROOT = Path(__file__).parents[1]
LIBRARY = f"import radialbeams; radialbeams.canonicalize({str(PICTURES / 'rocket.webp')!r})"
COMMANDS = {
    "import": ["-c", "import radialbeams, onnxruntime"],
    "library": ["-c", LIBRARY],
    "angle": ["-m", "radialbeams", "angle", "in"],
    "upright": ["-m", "radialbeams", "upright", "in", "-o", "out", "--report", "page.html"],
}
CALLS = "open,openat,openat2,creat,mkdir,mkdirat,socket,connect,sendto,sendmsg"
# With -y the folder that a path starts from stands in brackets behind its number.
OPENED = re.compile(r'(?:open|openat|openat2|creat|mkdir|mkdirat)\((?:\w+<([^>]*)>, )?"([^"]*)".*')


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder to work in, and beside it a home that nothing may be written to."""
    (tmp_path / "home").mkdir()
    (tmp_path / "work" / "in").mkdir(parents=True)
    shutil.copy(PICTURES / "horse.webp", tmp_path / "work" / "in")
    return tmp_path


def run(place: Path, command: list[str], *before: str) -> None:
    """In a process that knows no variable of this one's but where Python finds things."""
    environment = {
        "HOME": str(place / "home"),
        "TMPDIR": str(place / "work"),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [*before, sys.executable, *command],
        cwd=place / "work",
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def traced(place: Path, command: list[str]) -> tuple[set[str], set[str]]:
    """What the processes of a command wrote outside the work folder, and whom they called."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed, so system calls cannot be seen.")
    log = place / "trace.txt"
    try:
        run(place, command, "strace", "-f", "-y", "-qq", "-s500", "-e", CALLS, "-o", str(log))
    except AssertionError as error:
        if "ptrace" in str(error):
            pytest.skip("This system does not let strace look at processes.")
        raise
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return written(lines, place / "work"), {line for line in lines if "AF_INET" in line}


def written(lines: list[str], work: Path) -> set[str]:
    opened = [match for line in lines if (match := OPENED.search(line))]
    changed = [
        Path(os.path.normpath(work / (match[1] or "") / match[2]))
        for match in opened
        if "mkdir" in match[0] or re.search("O_WRONLY|O_RDWR|O_CREAT|creat", match[0])
    ]
    allowed = [path.is_relative_to(work) or str(path).startswith("/dev/") for path in changed]
    return {str(path) for path, ours in zip(changed, allowed, strict=True) if not ours}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_nothing_is_left_in_the_home_folder(place: Path, command: list[str]) -> None:
    run(place, command)
    assert list((place / "home").iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_no_process_calls_anyone_or_writes_elsewhere(place: Path, command: list[str]) -> None:
    assert traced(place, command) == (set(), set())


def test_a_call_and_a_write_elsewhere_would_be_seen(place: Path) -> None:
    code = (
        "import os, socket, subprocess, sys; s = socket.socket(type=socket.SOCK_DGRAM);"
        "s.connect(('127.0.0.1', 9)); os.mkdir('../home/cache');"
        "subprocess.run([sys.executable, '-c', 'open(\"../home/child\", \"w\")'])"
    )
    files, calls = traced(place, ["-c", code])
    assert {os.path.basename(path) for path in files} == {"cache", "child"}
    assert len(calls) == 2


def test_a_program_that_imported_the_runtime_first_queues_no_more() -> None:
    code = (
        "import onnxruntime; asked = [];"
        "onnxruntime.disable_telemetry_events = lambda: asked.append(1);"
        "import radialbeams; print(asked)"
    )
    environment = {**os.environ, "ORT_DISABLE_TELEMETRY": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.stdout == "[1]\n", done.stderr


def test_the_switch_is_named_once() -> None:
    files = sorted((ROOT / "radialbeams").rglob("*.py"))
    naming = [path.name for path in files if "TELEMETRY" in path.read_text(encoding="utf-8")]
    assert naming == ["telemetry.py"]
