"""Where a case runs: its own folder, its own random numbers, and a list of what it found."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock

from .command import Command
from .gallery import Gallery, make_gallery

# What can go wrong, one column each. `other`: a message that is no sentence, an escape sequence on
# the terminal, too much memory, files left behind, a wrong exit code.
KINDS = ("lost", "torn", "twice", "outside", "traceback", "hang", "omitted", "other")


@dataclass(frozen=True)
class Finding:
    """A promise that one case broke."""

    number: int
    kind: str  # one of KINDS
    text: str


@dataclass
class Bench:
    """What all cases of one probe share. Threads may use it."""

    folder: Path
    command: Command
    seed: int
    pictures: int = 48
    _lock: Lock = field(default_factory=Lock)

    @cached_property
    def _gallery(self) -> Gallery:
        return make_gallery(self.folder / "gallery", self.command, self.pictures, self.seed)

    @property
    def gallery(self) -> Gallery:
        """The same pictures for all cases, with what undisturbed runs make of them."""
        with self._lock:
            return self._gallery


@dataclass
class Case:
    """One numbered attempt. Checks call `found`; the runner reads `findings` and `skipped`."""

    bench: Bench
    family: str
    number: int
    folder: Path
    rng: random.Random
    findings: list[Finding] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    tried: int = 1

    @property
    def command(self) -> Command:
        return self.bench.command

    def found(self, kind: str, text: str) -> None:
        self.findings.append(Finding(self.number, kind, text))

    def skip(self, why: str) -> None:
        self.skipped.append(why)
        self.tried = 0


@dataclass(frozen=True)
class Family:
    """Cases of one kind; `check` gets a case and reports to it."""

    name: str
    about: str
    check: Callable[[Case], None]
    cases: int  # how many by default
    each: int = 1  # files that one case holds
    slow: bool = False  # only when it is asked for


@dataclass
class Tally:
    """What came of a family."""

    tried: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> Counter[str]:
        return Counter(finding.kind for finding in self.findings)


@contextmanager
def opened_case(bench: Bench, family: str, number: int) -> Iterator[Case]:
    """A case with an empty folder, which is removed afterwards whatever lies in it."""
    folder = bench.folder / f"{family}-{number}"
    folder.mkdir()
    try:
        rng = random.Random(f"{bench.seed}/{family}/{number}")
        yield Case(bench, family, number, folder, rng)
    finally:
        remove(folder)


def remove(folder: Path) -> None:
    """Also where folders may not be entered or are nested too deeply for recursion."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        subprocess.run(["rm", "-rf", "--", str(folder)], check=False, capture_output=True)
