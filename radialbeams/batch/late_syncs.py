"""LateSyncs: files are synced to disk in a thread, while the next ones are computed.

A disk needs from tenths of a millisecond to many milliseconds to confirm that a file is stored. A
worker that waited for it after every file would compute nothing meanwhile.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor

from radialbeams.batch import system


class LateSyncs:
    """The syncs that have begun, by the names of their files."""

    def __init__(self) -> None:
        self._begun: dict[str, Future[None]] = {}
        self._thread: ThreadPoolExecutor | None = ThreadPoolExecutor(1)
        try:  # the only thread starts here, so that no later call can fail to start it
            self._thread.submit(int).result()
        except RuntimeError:  # the system allows no more threads
            self._thread = None

    def begin(self, name: str, descriptor: int) -> None:
        """Begins to sync an open file, which the caller may close. Without a thread, it waits."""
        try:
            own = None if self._thread is None else os.dup(descriptor)
        except OSError:  # too many open files
            own = None
        if self._thread is None or own is None:
            system.sync(descriptor)
            return
        self._begun[name] = self._thread.submit(_sync_and_close, own)

    def has_ended_well(self, name: str) -> bool:
        """Whether `wait` returns at once."""
        sync = self._begun.get(name)
        return sync is None or (sync.done() and sync.exception() is None)

    def wait(self, name: str) -> None:
        """Returns when the file is on the disk; raises the OSError of its sync."""
        if sync := self._begun.pop(name, None):
            sync.result()


def _sync_and_close(descriptor: int) -> None:
    try:
        system.sync(descriptor)
    finally:
        os.close(descriptor)
