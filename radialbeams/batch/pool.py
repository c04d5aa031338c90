"""The workers of a run: as many processes as asked for, each replaced when it dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import IO, Any, cast

from radialbeams.batch.job import Job, Outcome
from radialbeams.batch.plan import BATCH, Item

# -P: a folder of images may hold a random.py as well, and that is not to be imported.
COMMAND = [sys.executable, "-P", "-m", "radialbeams.batch.worker"]
PACKAGES = str(Path(__file__).parents[2])
AHEAD = 3  # batches for each worker that may be begun before the oldest is done
ATTEMPTS = 3  # of a batch whose worker dies without being at any file
# Every worker has one thread: more would only get into each other's way.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class PoolError(ValueError):
    """The workers cannot work at all."""


class _Died(Exception):
    """`at`: the place in its batch of the file that a worker died at, if it had come to one."""

    def __init__(self, why: str, at: int | None, begun: bool) -> None:
        super().__init__(why)
        self.why, self.at, self.begun = why, at, begun

    def blamed(self, places: list[int]) -> list[int]:
        return [] if self.at is None else [places[self.at]]


class WorkerPool:
    """Gives batches to processes and their outcomes back in the order of the batches."""

    def __init__(self, job: Job, workers: int, *, lock: int | None = None) -> None:
        self.ahead = AHEAD * workers
        self._job, self._lock = job, lock
        self._threads = ThreadPoolExecutor(workers)  # each minds one process
        self._free: SimpleQueue[_Process] = SimpleQueue()
        self._all: list[_Process] = []
        self._closed = False

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed = True
        for process in self._all:
            process.kill()
        self._threads.shutdown(cancel_futures=True)

    def outcomes(self, batches: Iterable[tuple[int, list[Item]]]) -> Iterator[list[Outcome]]:
        """The batches come with their numbers in the whole plan."""
        begun: deque[Future[list[Outcome]]] = deque()
        for number, batch in batches:
            begun.append(self._threads.submit(self._outcomes, number, batch))
            if len(begun) == self.ahead:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()

    def _outcomes(self, number: int, batch: list[Item]) -> list[Outcome]:
        """A file at which a worker dies has failed; the others are given to a new worker."""
        thumbnails = self._job.thumbnails - number * BATCH
        failed: dict[int, Outcome] = {}
        strikes = 0  # deaths that no file is to blame for
        while True:
            rest = [place for place in range(len(batch)) if place not in failed]
            try:
                found = self._work([batch[place] for place in rest], thumbnails)
            except _Died as died:
                strikes += died.at is None
                if strikes == ATTEMPTS and not died.begun:
                    raise PoolError(f"No worker could be started. {died.why}") from died
                blamed = rest if strikes == ATTEMPTS else died.blamed(rest)
                failed |= {place: Outcome(batch[place].path, error=died.why) for place in blamed}
                continue
            done = {**failed, **dict(zip(rest, found, strict=True))}
            return [done[place] for place in range(len(batch))]

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
        process = _Process(self._job, self._lock)
        self._all.append(process)
        if self._closed:  # meanwhile
            process.kill()
        return process


def _environment() -> dict[str, str]:
    """This process's own, with one thread, and with the package found where it was found here."""
    found = os.pathsep.join(filter(None, (PACKAGES, os.environ.get("PYTHONPATH"))))
    return {**os.environ, **dict.fromkeys(THREADS, "1"), "PYTHONPATH": found}


class _Process:
    """A worker as seen from here: orders go in, messages come out, one of each a line."""

    def __init__(self, job: Job, lock: int | None) -> None:
        self._process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Decoders complain there; what matters comes as a message.
            stderr=None if os.environ.get("RADIALBEAMS_TRACEBACK") else subprocess.DEVNULL,
            text=True,
            encoding="ascii",
            env=_environment(),
            pass_fds=() if lock is None else (lock,),
        )
        self._orders = cast(IO[str], self._process.stdin)
        self._messages = cast(IO[str], self._process.stdout)
        self._order(asdict(job))

    def work(self, items: list[Item], thumbnails: int) -> list[Outcome]:
        self._order({"items": [[i.path, i.out] for i in items], "thumbnails": thumbnails})
        at, begun = None, False
        while message := self._message():
            if "broken" in message:
                raise PoolError(message["broken"])
            if "outcomes" in message:
                return [Outcome(**fields) for fields in message["outcomes"]]
            at, begun = message["at"], True
        raise _Died(self._why(), at, begun)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _order(self, content: Any) -> None:
        with suppress(BrokenPipeError):  # it died; reading its last messages tells why
            self._orders.write(json.dumps(content) + "\n")
            self._orders.flush()

    def _message(self) -> dict[str, Any] | None:
        line = self._messages.readline()
        message: dict[str, Any] | None = json.loads(line) if line.endswith("\n") else None
        return message

    def _why(self) -> str:
        code = self._process.wait()
        if code in (-signal.SIGPROF, -signal.SIGALRM):
            return "It took far longer than a file of its size may. Save it again, or leave it out."
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"The program that read it broke down ({how}). Leave it out, or save it again."
