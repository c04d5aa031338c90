"""A pool of worker processes, each of which is replaced when it dies."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, astuple
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, cast

from radialbeams.batch import system
from radialbeams.batch.job import JobSettings
from radialbeams.batch.messages import BatchOrder, WorkerMessage
from radialbeams.batch.outcome import Outcome
from radialbeams.batch.plan import BATCH, Item
from radialbeams.stored import JsonDict

# -P: the current folder may hold a file such as random.py, which must not be imported.
COMMAND = [sys.executable, "-P", "-m", "radialbeams.batch.worker"]
PACKAGES = str(Path(__file__).parents[2])
AHEAD = 3  # batches per worker that may be submitted before the oldest is done
ATTEMPTS = 3  # at a batch whose worker dies between two files
# Limits in seconds of wall-clock time. The worker itself limits its CPU time; these limits catch a
# worker that waits without computing, and systems without a CPU timer.
STARTING = 180.0
FILE = 60.0
MODEL, MODEL_VIEW = 180.0, 3.0  # for each call of the model, plus for each view in it
# Every worker computes in one thread, since there are as many workers as cores. Its other threads
# only wait for the disk, so all share one heap: glibc would reserve 64 MiB for that of each, which
# count towards --max-memory.
SET_TO_ONE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MALLOC_ARENA_MAX")


class PoolError(ValueError):
    """No worker can do its work: it does not start, or the model does not run."""


class _Died(Exception):
    """A worker died. `at` is the index in its batch of the file that it was reading, if any."""

    def __init__(self, why: str, at: int | None, begun: bool) -> None:
        super().__init__(why)
        self.why, self.at, self.begun = why, at, begun

    def blamed(self, indices: list[int]) -> list[int]:
        return [] if self.at is None else [indices[self.at]]


class WorkerPool:
    """Distributes batches over worker processes; returns outcomes in the order of the batches."""

    def __init__(self, job: JobSettings, workers: int, *, lock: int | None = None) -> None:
        self.ahead = AHEAD * workers
        self._job, self._lock = job, lock
        self._threads = ThreadPoolExecutor(workers)  # each waits for one process
        with _threads_in_words():
            self._watchdog = system.Watchdog()
        self._free: SimpleQueue[_Process] = SimpleQueue()
        self._all: list[_Process] = []
        self._closed = False

    def close(self) -> None:
        self._closed = True
        for process in self._all:
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        self._watchdog.close()

    def outcomes(self, batches: Iterable[tuple[int, list[Item]]]) -> Iterator[list[Outcome]]:
        """The outcomes of each batch. Batches are given with their numbers in the whole plan."""
        begun: deque[Future[list[Outcome]]] = deque()
        for number, batch in batches:
            with _threads_in_words():
                begun.append(self._threads.submit(self._outcomes, number, batch))
            if len(begun) == self.ahead:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()

    def _outcomes(self, number: int, batch: list[Item]) -> list[Outcome]:
        """A file that kills its worker has failed; a new worker gets the rest of the batch."""
        thumbnails = self._job.thumbnails - number * BATCH
        failed: dict[int, Outcome] = {}
        strikes = 0  # deaths between two files
        while True:
            rest = [index for index in range(len(batch)) if index not in failed]
            try:
                results = self._work([batch[index] for index in rest], thumbnails)
            except _Died as died:
                strikes += died.at is None
                if strikes == ATTEMPTS and not died.begun:
                    raise PoolError(f"No worker could be started. {died.why}") from died
                blamed = rest if strikes == ATTEMPTS else died.blamed(rest)
                failed |= {index: Outcome(batch[index].path, error=died.why) for index in blamed}
                continue
            complete = {**failed, **dict(zip(rest, results, strict=True))}
            return [complete[index] for index in range(len(batch))]

    def _work(self, items: list[Item], thumbnails: int) -> list[Outcome]:
        if not items:
            return []
        process = self._process()
        outcomes = process.work(items, thumbnails)
        self._free.put(process)  # one that died is not put back
        return outcomes

    def _process(self) -> _Process:
        with suppress(Empty):
            return self._free.get_nowait()
        if self._closed:
            raise PoolError("The run was stopped.")
        try:
            process = _Process(self._job, self._lock, self._watchdog)
        except OSError as error:  # such as a limit on processes, memory or open files
            raise PoolError(
                f"No worker could be started ({error.strerror}). Free resources, or use fewer "
                "--workers."
            ) from error
        self._all.append(process)
        if self._closed:  # while the process was started
            process.kill()
        return process


@contextmanager
def _threads_in_words() -> Iterator[None]:
    """Converts the RuntimeError that Python raises at a system limit into a PoolError."""
    try:
        yield
    except RuntimeError as error:
        raise PoolError(
            "The system allows no more threads or processes for this user. Raise the limit "
            "(ulimit -u), or use fewer --workers."
        ) from error


def environment() -> dict[str, str]:
    """The environment of a worker: that of this process, one thread, and the same package."""
    path = os.pathsep.join(filter(None, (PACKAGES, os.environ.get("PYTHONPATH"))))
    return {**os.environ, **dict.fromkeys(SET_TO_ONE, "1"), "PYTHONPATH": path}


class _Process:
    """The parent's side of a worker: it writes orders and reads messages, one JSON line each."""

    def __init__(self, job: JobSettings, lock: int | None, watchdog: system.Watchdog) -> None:
        self._process = system.start(
            COMMAND,
            environment(),
            # Decoders print warnings to standard error; errors that matter come as messages.
            quiet=not os.environ.get("RADIALBEAMS_TRACEBACK"),
            handles=() if lock is None else (lock,),
        )
        self._watchdog = watchdog
        self._orders = cast(IO[str], self._process.stdin)
        self._messages = cast(IO[str], self._process.stdout)
        self._is_ready = False
        self._order(asdict(job))

    def work(self, items: list[Item], thumbnails: int) -> list[Outcome]:
        self._order({"items": [astuple(item) for item in items], "thumbnails": thumbnails})
        self._watchdog.watch(self._process, FILE if self._is_ready else STARTING)
        last: WorkerMessage = {}
        while message := self._message():
            if "broken" in message:
                raise PoolError(message["broken"])
            if "outcomes" in message:
                self._watchdog.forget(self._process)
                return [Outcome(**fields) for fields in message["outcomes"]]
            last, self._is_ready = message, True
            self._watchdog.watch(self._process, _seconds_for(message))
        self._watchdog.forget(self._process)
        raise self._death(last)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _order(self, content: JsonDict | BatchOrder) -> None:
        with suppress(BrokenPipeError):  # it died; its last messages and exit code say why
            self._orders.write(json.dumps(content) + "\n")
            self._orders.flush()

    def _message(self) -> WorkerMessage | None:
        line = self._messages.readline()
        message: WorkerMessage | None = json.loads(line) if line.endswith("\n") else None
        return message

    def _death(self, last: WorkerMessage) -> Exception:
        """The exception for a process that ended after its `last` message."""
        code = self._process.wait()
        if self._watchdog.has_killed(self._process) or system.ran_out_of_cpu_time(code):
            if not self._is_ready:
                return PoolError(
                    "No worker could be started: loading the model took far too long. "
                    "Use another model, or export this one again."
                )
            if "model" in last:
                return PoolError(
                    f"The model took far too long for {last['model']} views. Use another model, "
                    "or export this one again."
                )
            why = "It took far too long for a file of its size. Save it again, or leave it out."
        else:
            how = system.exit_reason(code)
            why = f"The process that read it crashed ({how}). Leave it out, or save it again."
        return _Died(why, last.get("at"), self._is_ready)


def _seconds_for(message: WorkerMessage) -> float:
    """The wall-clock limit for the step that a worker has just reported."""
    return MODEL + MODEL_VIEW * message["model"] if "model" in message else FILE
