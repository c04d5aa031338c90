"""The bounded queue of files that wait for a worker, which takes them in batches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from radialbeams.serving.errors import Problem
from radialbeams.serving.held import Share
from radialbeams.serving.options import FileTask
from radialbeams.serving.records import FileRecord, Result

# Larger batches are hardly faster on a CPU, and each file waits for the whole batch.
BATCH = 8
BATCH_BYTES = 2 * 2**20  # so that a large file does not delay small ones


@dataclass(eq=False)
class QueuedFile:
    """One file in the queue; `result` is its record and the bytes of its output."""

    task: FileTask
    data: bytes
    result: asyncio.Future[Result]
    share: Share  # the memory that its request holds
    alone: bool = False  # a worker died on a batch with this file

    def finish(self, record: FileRecord, data: bytes) -> None:
        if self.result.done():  # the request is no longer waiting
            return
        try:
            self.share.add(len(data))
        except Problem as problem:
            record, data = problem.content, b""
        self.result.set_result((record, data))


class Backlog:
    """A first-in, first-out queue. An idle worker takes whatever waits, up to a batch."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.held = 0  # files that wait or are being processed
        self._waiting: deque[QueuedFile] = deque()
        self._some = asyncio.Event()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def check_room(self, count: int) -> None:
        if self.held + count > self.size:
            raise Problem(
                "overloaded",
                f"The service is busy: {self.held} of {self.size} places in its queue are taken. "
                "Try again in a second.",
            )

    def add(self, entries: Sequence[QueuedFile]) -> None:
        """Adds all files or none, so that a request is either accepted or refused as a whole."""
        self.check_room(len(entries))
        self.held += len(entries)
        for entry in entries:
            entry.result.add_done_callback(self._release)
        self._waiting.extend(entries)
        self._some.set()

    def put_back(self, entries: Sequence[QueuedFile]) -> None:
        """Puts files back at the front, each to be tried alone."""
        for entry in reversed(entries):
            entry.alone = True
            self._waiting.appendleft(entry)
        self._some.set()

    async def take(self) -> list[QueuedFile]:
        """The next batch, as soon as there is at least one file."""
        while True:
            while not self._waiting:
                self._some.clear()
                await self._some.wait()
            if batch := self._batch():
                return batch

    def _batch(self) -> list[QueuedFile]:
        batch: list[QueuedFile] = []
        size = 0
        while self._waiting and len(batch) < BATCH:
            entry = self._waiting[0]
            if batch and (entry.alone or batch[0].alone or size + len(entry.data) > BATCH_BYTES):
                break
            self._waiting.popleft()
            if not entry.result.done():  # otherwise the request is no longer waiting
                batch.append(entry)
                size += len(entry.data)
        return batch

    def _release(self, _: asyncio.Future[Any]) -> None:
        self.held -= 1
