"""The files of all requests that wait for a worker: bounded, and handed out in batches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from radialbeams.serving.errors import Problem
from radialbeams.serving.held import Share
from radialbeams.serving.options import Task

# Larger batches make a model hardly faster on a CPU, and each file waits for the whole batch.
BATCH = 8
BATCH_BYTES = 2 * 2**20  # so that a large file does not hold up small ones


@dataclass(eq=False)
class Entry:
    """One file on its way; `result` is a record and the bytes that go with it."""

    task: Task
    data: bytes
    result: asyncio.Future[tuple[dict[str, Any], bytes]]
    share: Share  # what its request holds
    alone: bool = False  # a worker died of a batch with it

    def finish(self, record: dict[str, Any], data: bytes) -> None:
        if self.result.done():  # nobody waits for it any more
            return
        try:
            self.share.add(len(data))
        except Problem as problem:
            record, data = problem.content, b""
        self.result.set_result((record, data))


class Backlog:
    """First come, first served. Batching is dynamic: a worker takes what waits when it is free."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.held = 0  # entries that wait or are worked on
        self._waiting: deque[Entry] = deque()
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

    def add(self, entries: Sequence[Entry]) -> None:
        """All of them or none, so that a request is either accepted or not."""
        self.check_room(len(entries))
        self.held += len(entries)
        for entry in entries:
            entry.result.add_done_callback(self._release)
        self._waiting.extend(entries)
        self._some.set()

    def put_back(self, entries: Sequence[Entry]) -> None:
        """At the front, each to be tried alone."""
        for entry in reversed(entries):
            entry.alone = True
            self._waiting.appendleft(entry)
        self._some.set()

    async def take(self) -> list[Entry]:
        """The next batch, as soon as there is at least one file."""
        while True:
            while not self._waiting:
                self._some.clear()
                await self._some.wait()
            if batch := self._batch():
                return batch

    def _batch(self) -> list[Entry]:
        batch: list[Entry] = []
        size = 0
        while self._waiting and len(batch) < BATCH:
            entry = self._waiting[0]
            if batch and (entry.alone or batch[0].alone or size + len(entry.data) > BATCH_BYTES):
                break
            self._waiting.popleft()
            if not entry.result.done():  # else nobody waits for it any more
                batch.append(entry)
                size += len(entry.data)
        return batch

    def _release(self, _: asyncio.Future[Any]) -> None:
        self.held -= 1
