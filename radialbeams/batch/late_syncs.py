"""LateSyncs: files are synced to disk in threads, while the next ones are computed.

A disk needs from tenths of a millisecond to many milliseconds to confirm that a file is stored. A
worker that waited for it after every file would compute nothing meanwhile.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from queue import SimpleQueue
from typing import NamedTuple

from radialbeams.batch import system

# A disk confirms several files together: of 16 files of 15 kB, each took 0.15 ms in one thread and
# 0.09 ms in four.
THREADS = 4
STACK = 256 * 2**10  # bytes of each; the usual 8 MiB would count towards --max-memory


class _Sync(NamedTuple):
    descriptor: int
    ended: Future[None]


class LateSyncs:
    """The syncs that have begun, by the names of their files."""

    def __init__(self) -> None:
        self._begun: dict[str, Future[None]] = {}
        self._queue: SimpleQueue[_Sync] = SimpleQueue()
        self._threads = _started(self._queue)

    def begin(self, name: str, descriptor: int) -> None:
        """Begins to sync an open file, which the caller may close. Without a thread, it waits."""
        try:
            own = os.dup(descriptor) if self._threads else None
        except OSError:  # too many open files
            own = None
        if own is None:
            system.sync(descriptor)
            return
        self._begun[name] = Future()
        self._queue.put(_Sync(own, self._begun[name]))

    def has_ended_well(self, name: str) -> bool:
        """Whether `wait` returns at once."""
        ended = self._begun.get(name)
        return ended is None or (ended.done() and ended.exception() is None)

    def wait(self, name: str) -> None:
        """Returns when the file is on the disk; raises the error of its sync."""
        if ended := self._begun.pop(name, None):
            ended.result()


def _started(queue: SimpleQueue[_Sync]) -> int:
    """Starts the threads, as many as the system allows, and returns their number."""
    usual = threading.stack_size(STACK)
    try:
        for number in range(THREADS):
            try:
                threading.Thread(target=_serve, args=(queue,), daemon=True).start()
            except RuntimeError:
                return number
        return THREADS
    finally:
        threading.stack_size(usual)


def _serve(queue: SimpleQueue[_Sync]) -> None:
    while True:
        descriptor, ended = queue.get()
        try:
            system.sync(descriptor)
        except Exception as error:
            os.close(descriptor)
            ended.set_exception(error)
        else:
            os.close(descriptor)
            ended.set_result(None)
