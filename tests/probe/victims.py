"""Things outside of what a command may touch, and whether it touched them."""

from __future__ import annotations

import os
from pathlib import Path

from .bench import Case
from .gallery import Content, contents

NAMES = ("victim.png", "journal.jsonl", "plan.jsonl", "plan.part", "notes.txt")


class Outside:
    """A folder with files that no command has been given."""

    def __init__(self, case: Case) -> None:
        self.case, self.folder = case, case.folder / "outside"
        (self.folder / "empty").mkdir(parents=True)
        for name in NAMES:
            (self.folder / name).write_bytes(b"of someone else: " + name.encode())
        self.remember()

    def remember(self) -> None:
        """What lies there now is what has to lie there later."""
        self._before = self._now()

    @property
    def victim(self) -> Path:
        return self.folder / NAMES[0]

    def judge(self, what: str) -> None:
        now = self._now()
        for name in sorted(set(now) | set(self._before)):
            if now.get(name) != self._before.get(name):
                became = (
                    "changed" if name in now and name in self._before else "appeared or vanished"
                )
                self.case.found("outside", f"{what}: {name}, outside of the output, {became}")

    def _now(self) -> Content:
        """Also times, since something may have been written there and removed again."""
        states = {
            f"the state of {os.path.relpath(path, self.folder)}": _state(path)
            for place, folders, files in os.walk(self.folder)
            for path in (place, *(os.path.join(place, name) for name in (*folders, *files)))
        }
        return {**contents(self.folder), **states}


def _state(path: str) -> str:
    found = os.lstat(path)
    return f"mode {found.st_mode:o}, owner {found.st_uid}, changed {found.st_mtime_ns}"
