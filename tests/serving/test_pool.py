"""The backlog and the pool, with a worker that dies or hangs when it is told to."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from radialbeams.serving import backlog, pool
from radialbeams.serving.backlog import Backlog, QueuedFile
from radialbeams.serving.errors import Problem
from radialbeams.serving.held import Held, Share
from radialbeams.serving.logs import Log
from radialbeams.serving.metrics import Metrics
from radialbeams.serving.options import FileTask
from radialbeams.serving.pool import ServicePool
from radialbeams.serving.settings import ServiceSettings

# Speaks as a worker does, and counts the files of each batch.
WORKER = """
import os, sys, time
from radialbeams.serving import frames
orders, out = sys.stdin.buffer, sys.stdout.buffer
frames.read(orders)
frames.write(out, {"ready": True})
while frame := frames.read(orders):
    files = frame[1]
    if b"die" in files: os._exit(9)
    if b"hang" in files: time.sleep(60)
    frames.write(out, {"records": [{"batch": len(files)} for _ in files]}, files)
"""
TASK = FileTask("ring")
HELD = 30  # bytes of results


@pytest.fixture
def small_pool(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setattr(pool, "COMMAND", [sys.executable, "-c", WORKER])
    monkeypatch.setattr(pool, "CLOCK_FACTOR", 1.0)

    def run(use: Callable[[ServicePool], Coroutine[Any, Any, Any]], **settings: Any) -> Any:
        async def main() -> Any:
            quiet = ServiceSettings(**{"workers": 1, "seconds": 0.5, **settings})
            running = ServicePool(quiet, Metrics(), Log(stream=open("/dev/null", "w")))  # noqa: SIM115
            running.start()
            try:
                return await use(running)
            finally:
                await running.stop()

        return asyncio.run(main())

    return run


def work(running: ServicePool, *files: bytes) -> Coroutine[Any, Any, list[Any]]:
    return running.work(TASK, files, Share(Held(HELD)))


def test_waiting_files_become_one_batch_and_keep_their_order(small_pool: Any) -> None:
    async def use(running: ServicePool) -> Any:
        return await work(running, b"a", b"b", b"c")

    assert small_pool(use) == [({"batch": 3}, b"a"), ({"batch": 3}, b"b"), ({"batch": 3}, b"c")]


@pytest.mark.parametrize("bad", [b"die", b"hang"])
def test_a_file_that_ends_its_worker_fails_alone(small_pool: Any, bad: bytes) -> None:
    async def use(running: ServicePool) -> Any:
        found = await work(running, b"a", bad, b"c")
        return found, running.metrics.restarts, await work(running, b"later")

    found, restarts, later = small_pool(use)
    assert [record for record, _ in found[::2]] == [{"batch": 1}, {"batch": 1}]
    assert found[1][0]["error"]["code"] == "took_too_long"
    assert restarts == 2  # once in the batch, once alone
    assert later == [({"batch": 1}, b"later")]


def test_a_full_backlog_refuses_all_of_a_request_and_recovers(small_pool: Any) -> None:
    async def use(running: ServicePool) -> Any:
        first = asyncio.create_task(work(running, *[b"x"] * 3))
        await asyncio.sleep(0)
        with pytest.raises(Problem) as refused:
            await work(running, b"y", b"z")
        await first
        return refused.value, running.backlog.held, await work(running, b"y", b"z")

    problem, held, after = small_pool(use, queue=4, max_files=4)
    assert (problem.code, problem.status) == ("overloaded", 503)
    assert held == 0
    assert [data for _, data in after] == [b"y", b"z"]


def test_results_that_exceed_what_may_be_held_are_dropped(small_pool: Any) -> None:
    async def use(running: ServicePool) -> Any:
        return await work(running, b"x" * 20, b"y" * 20, b"z")

    first, second, third = small_pool(use)
    assert (first[1], third[1]) == (b"x" * 20, b"z")
    assert (second[0]["error"]["code"], second[1]) == ("overloaded", b"")


def entries(*sizes: int) -> list[QueuedFile]:
    loop = asyncio.get_running_loop()
    share = Share(Held(HELD))
    return [QueuedFile(TASK, bytes(size), loop.create_future(), share) for size in sizes]


def batches(given: Callable[[], list[QueuedFile]]) -> list[list[int]]:
    async def main() -> list[list[int]]:
        waiting = Backlog(100)
        waiting.add(given())
        found = []
        while waiting.waiting:
            found.append([len(entry.data) for entry in await waiting.take()])
        return found

    return asyncio.run(main())


def test_a_batch_is_bounded_by_files_and_by_bytes() -> None:
    large = backlog.BATCH_BYTES
    assert batches(lambda: entries(*[1] * (backlog.BATCH + 1))) == [[1] * backlog.BATCH, [1]]
    assert batches(lambda: entries(1, large, 2, 3)) == [[1], [large], [2, 3]]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ([sys.executable, "-c", "raise SystemExit(3)"], "exit code 3"),
        (["/nowhere/python"], "No such file or directory"),
    ],
)
def test_a_worker_that_cannot_start_is_reported(
    small_pool: Any, monkeypatch: pytest.MonkeyPatch, command: list[str], reason: str
) -> None:
    monkeypatch.setattr(pool, "COMMAND", command)

    async def use(running: ServicePool) -> Any:
        while running.broken is None:
            await asyncio.sleep(0.01)
        return running.ready, running.broken

    ready, broken = small_pool(use)
    assert not ready
    assert reason in broken
