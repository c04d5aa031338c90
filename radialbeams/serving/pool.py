"""The worker processes of the service: they take files from the queue and are replaced on death."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import cast

from radialbeams.batch import system
from radialbeams.batch.pool import environment
from radialbeams.serving import frames
from radialbeams.serving.backlog import Backlog, QueuedFile
from radialbeams.serving.errors import Problem
from radialbeams.serving.held import Share
from radialbeams.serving.logs import Log
from radialbeams.serving.metrics import Metrics
from radialbeams.serving.options import FileTask
from radialbeams.serving.records import Result
from radialbeams.serving.settings import ServiceSettings

# -P: the current folder may hold a file such as random.py, which must not be imported.
COMMAND = [sys.executable, "-P", "-m", "radialbeams.serving.worker"]
STARTING = 180.0  # seconds of wall-clock time
# The wall-clock limit as a multiple of the CPU limit, for a worker that waits without computing.
CLOCK_FACTOR = 3.0
AGAIN = 1.0  # seconds between two attempts to start a worker
STOPPING = 5.0  # seconds that a worker has to exit before it is killed

TOO_LONG = "It took far too long. Save it again, or leave it out."


class WorkerDied(Exception):
    """The process ended by itself, or it took too long."""


class ServicePool:
    """One asyncio task per process, which takes batches from the queue and sends them to it."""

    def __init__(self, settings: ServiceSettings, metrics: Metrics, log: Log) -> None:
        self.settings, self.metrics = settings, metrics
        self.backlog = Backlog(settings.queue)
        self.broken: str | None = None  # why no worker can be started
        self._log = log
        self._ready: set[int] = set()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def ready(self) -> bool:
        return bool(self._ready)

    @property
    def ready_workers(self) -> int:
        return len(self._ready)

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._keep_working(number))
            for number in range(self.settings.processes)
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def work(self, task: FileTask, files: Sequence[bytes], share: Share) -> list[Result]:
        """A record and the output bytes for each file; the bytes count towards the share."""
        loop = asyncio.get_running_loop()
        queued = [QueuedFile(task, data, loop.create_future(), share) for data in files]
        self.backlog.add(queued)
        return list(await asyncio.gather(*(file.result for file in queued)))

    async def _keep_working(self, number: int) -> None:
        while True:
            worker = await self._started(number)
            self._ready.add(number)
            try:
                await self._work_until_death(worker)
            finally:
                self._ready.discard(number)
                await worker.close()
            self.metrics.restarts += 1

    async def _started(self, number: int) -> _Worker:
        """Tries until a worker is ready: a missing resource may become available again."""
        while True:
            worker = await self._attempt()
            if worker is not None:
                self._log.event("worker ready", worker=number, pid=worker.pid)
                return worker
            self._log.event("worker does not start", worker=number, reason=self.broken)
            await asyncio.sleep(AGAIN)

    async def _attempt(self) -> _Worker | None:
        try:
            worker = await _Worker.start(self.settings)
        except OSError as error:  # such as a limit on processes or open files
            self.broken = f"No worker could be started ({error.strerror}). Free resources."
            return None
        self.broken = await worker.start_error()
        if self.broken is None:
            return worker
        await worker.close()
        return None

    async def _work_until_death(self, worker: _Worker) -> None:
        while True:
            batch = await self.backlog.take()
            self.metrics.batch(len(batch))
            try:
                results = await worker.work(batch)
            except WorkerDied as died:
                self._log.event("worker died", reason=str(died), files=len(batch))
                worker.kill()
                self._retry_or_fail(batch, died)
                return
            except asyncio.CancelledError:
                self._fail(batch, Problem("stopping", "The service stopped. Send it again."))
                raise
            for entry, (record, data) in zip(batch, results, strict=True):
                entry.finish(record, data)

    def _retry_or_fail(self, batch: list[QueuedFile], died: WorkerDied) -> None:
        """It is unknown which file of a batch killed the worker, so each is tried again alone."""
        if len(batch) > 1:
            self.backlog.put_back(batch)
        else:
            self._fail(batch, Problem("took_too_long", str(died)))

    def _fail(self, batch: list[QueuedFile], problem: Problem) -> None:
        for entry in batch:
            entry.finish(problem.content, b"")


class _Worker:
    """The service's side of one worker process."""

    def __init__(self, process: Process, settings: ServiceSettings) -> None:
        self._process, self._settings = process, settings
        self._orders = cast(asyncio.StreamWriter, process.stdin)
        self._answers = cast(asyncio.StreamReader, process.stdout)
        self.pid = process.pid

    @classmethod
    async def start(cls, settings: ServiceSettings) -> _Worker:
        # Decoders print warnings to standard error; errors that matter come as frames.
        quiet = not os.environ.get("RADIALBEAMS_TRACEBACK")
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL if quiet else None,
            env=environment(),
        )
        return cls(process, settings)

    async def start_error(self) -> str | None:
        """Why the worker cannot start; None if it is ready."""
        try:
            # A worker does not need the token.
            fields = {**asdict(self._settings), "token": None}
            header, _ = await self._exchange({"settings": fields}, [], STARTING)
        except WorkerDied as died:
            return str(died)
        return header.get("broken")

    async def work(self, batch: list[QueuedFile]) -> list[Result]:
        header: frames.Header = {"tasks": [asdict(entry.task) for entry in batch]}
        seconds = CLOCK_FACTOR * self._settings.seconds
        answer, contents = await self._exchange(header, [entry.data for entry in batch], seconds)
        return list(zip(answer["records"], contents, strict=True))

    async def _exchange(
        self, header: frames.Header, contents: list[bytes], seconds: float
    ) -> frames.Frame:
        try:
            async with asyncio.timeout(seconds):
                self._orders.writelines(frames.packed(header, contents))
                await self._orders.drain()
                return await self._frame()
        except TimeoutError as error:
            raise WorkerDied(TOO_LONG) from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise WorkerDied(await self._exit_sentence()) from error

    async def _frame(self) -> frames.Frame:
        length = int.from_bytes(await self._answers.readexactly(frames.PREFIX), "big")
        header = frames.parsed(await self._answers.readexactly(length))
        contents = [
            await self._answers.readexactly(size) if size else b"" for size in header["sizes"]
        ]
        return header, contents

    async def _exit_sentence(self) -> str:
        code = await self._process.wait()
        if system.ran_out_of_cpu_time(code):
            return TOO_LONG
        return (
            f"The process that read it crashed ({system.exit_reason(code)}). Leave it out, or "
            "save it again."
        )

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    async def close(self) -> None:
        """Ends the process. Closing its input ends an idle worker; a busy one is killed."""
        with suppress(OSError):
            self._orders.close()
        try:
            async with asyncio.timeout(STOPPING):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()
