"""The command under test, as people start it: in a process group of its own, with a time limit."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bench import Case

ROOT = Path(__file__).parents[2]
LIMIT = 60.0  # seconds; a command that takes longer hangs
MODEL = "ring.coil100"  # the smallest
# Everything is turned, so that the bytes of a file tell how often it was.
ALL = ("--model", MODEL, "--min-confidence", "0", "--min-angle", "0")
TRACEBACK = b"Traceback (most recent call last)"


@dataclass(frozen=True)
class Done:
    """A command that has ended, or was ended because it hung."""

    code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    hung: bool = False
    memory: int = 0  # bytes that its largest process held at once, where that was measured

    @property
    def records(self) -> list[dict[str, Any]]:
        """The lines of `--json`; a line cut off at the end by a kill does not count."""
        found = []
        for line in self.stdout.splitlines():
            with suppress(ValueError):
                found.append(json.loads(line))
        return [record for record in found if isinstance(record, dict)]

    @property
    def message(self) -> str:
        return self.stderr.decode("utf-8", "replace").strip()


class Running:
    """A started command. Its output goes to files, so that nothing waits for a reader."""

    def __init__(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: Any, limit: float
    ) -> None:
        self._limit = limit
        self._out: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - open while it runs
        self._err: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._began = time.monotonic()
        self.process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=stdin,
            stdout=self._out,
            stderr=self._err,
            start_new_session=True,
        )

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def signal(self, number: int, *, group: bool = False) -> None:
        """To the process that was started, or to it and all that it started."""
        with suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.process.pid, number)

    def children(self) -> list[int]:
        return [pid for pid in _descendants(self.process.pid) if pid != self.process.pid]

    def wait(self, limit: float | None = None, *, measure: bool = False) -> Done:
        hung, memory, limit = False, 0, self._limit if limit is None else limit
        if measure:
            while self.is_running and self.seconds < limit:
                memory = max(memory, _largest(self.process.pid))
                time.sleep(0.02)
        try:
            self.process.wait(max(limit - self.seconds, 0.01))
        except subprocess.TimeoutExpired:
            hung = True
        self.signal(signal.SIGKILL, group=True)  # also what outlived its parent
        self.process.wait()
        return Done(
            self.process.returncode,
            _content(self._out),
            _content(self._err),
            self.seconds,
            hung,
            memory,
        )


@dataclass(frozen=True)
class Command:
    """How the program under test is started: the words before the verb."""

    argv: tuple[str, ...] = (sys.executable, "-m", "radialbeams")
    limit: float = LIMIT

    def start(
        self,
        *words: str | bytes,
        cwd: Path,
        wrap: Sequence[str] = (),
        shell: str = "",
        env: Mapping[str, str] | None = None,
        stdin: Any = subprocess.DEVNULL,
    ) -> Running:
        """`wrap` comes before the command; `shell` around it, with "$@" for the command."""
        argv = [*wrap, *self.argv, *(os.fsdecode(word) for word in words)]
        if shell:
            argv = ["sh", "-c", shell, "sh", *argv]
        return Running(argv, cwd, {**environment(), **(env or {})}, stdin, self.limit)

    def run(
        self,
        *words: str | bytes,
        cwd: Path,
        limit: float | None = None,
        measure: bool = False,
        **options: Any,
    ) -> Done:
        return self.start(*words, cwd=cwd, **options).wait(limit, measure=measure)


def environment() -> dict[str, str]:
    """The package is found where this file's repository is, wherever the command is started."""
    found = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    hidden = {"RADIALBEAMS_TRACEBACK"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "PYTHONPATH": found}


def judge_command(case: Case, done: Done, codes: Sequence[int] = (0, 1, 2), what: str = "") -> bool:
    """Whether a command ended as commands should; if not, the case knows why."""
    before = len(case.findings)
    label = f"{what}: " if what else ""
    if done.hung:
        case.found("hang", f"{label}still running after {done.seconds:.0f} s")
    if TRACEBACK in done.stderr or TRACEBACK in done.stdout:
        lines = done.message.splitlines() or ["?"]
        case.found("traceback", f"{label}{lines[-1][:300]}")
    elif not done.hung and done.code not in codes:
        expected = ", ".join(map(str, codes))
        case.found("other", f"{label}exit code {done.code}, expected {expected}: {_tail(done)}")
    # Who stops a command before it has begun needs no explanation.
    if done.code not in (0, 130, *(code for code in codes if code < 0)) and not (
        done.hung or re.search(r"\w+ \w+ \w+", done.message)
    ):
        case.found("other", f"{label}exit code {done.code} without a sentence: {_tail(done)}")
    for letter in sorted(unprintable(done.stderr + done.stdout)):
        case.found("other", f"{label}{letter!r} reached the terminal")
    return len(case.findings) == before


def unprintable(output: bytes) -> set[str]:
    """Control and format characters: escape sequences, and marks that reorder the text."""
    text = output.decode("utf-8", "replace")
    return {c for c in set(text) - set("\n\t\r") if unicodedata.category(c) in ("Cc", "Cf")}


def _tail(done: Done) -> str:
    return repr(done.message[-300:])


def _content(file: IO[bytes]) -> bytes:
    with file:
        file.seek(0)
        return file.read()


def _descendants(pid: int) -> list[int]:
    found, index = [pid], 0
    while index < len(found):
        with suppress(OSError):
            tasks = Path(f"/proc/{found[index]}/task")
            for task in tasks.iterdir():
                found += map(int, (task / "children").read_text().split())
        index += 1
    return found


def _largest(pid: int) -> int:
    """Bytes of the largest of a process and its descendants."""
    most = 0
    for one in _descendants(pid):
        with suppress(OSError, IndexError, ValueError):
            pages = int(Path(f"/proc/{one}/statm").read_text().split()[1])
            most = max(most, pages * os.sysconf("SC_PAGE_SIZE"))
    return most
