"""The batch step for images in memory, with the same worker processes as the plain batch.

Worker processes read files, so the bytes pass through a scratch folder. It is in shared memory if
there is enough space.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from radialbeams.batch import JobSettings, Outcome
from radialbeams.batch.landing import new_token, part_of
from radialbeams.batch.plan import BATCH, Item
from radialbeams.batch.pool import WorkerPool

IN_MEMORY = Path("/dev/shm")
MISSING = "This row has no image."
ROOM = 2 * 2**30  # bytes that must be free in it: several batches of large photos


@dataclass(frozen=True)
class Input:
    """An image and the name for its outcome; without content, `error` says what failed."""

    name: str
    content: bytes | None
    error: str | None = None


@dataclass(frozen=True)
class Result:
    """An outcome, and the bytes of its output (None if the image failed)."""

    outcome: Outcome
    content: bytes | None


class BytesStep:
    """Turns images in memory, in the same batches as the plain batch."""

    def __init__(self, job: JobSettings, workers: int = 1) -> None:
        # Outputs go to new paths in the scratch folder; the caller protects existing files.
        self._job = replace(job, overwrite=True)
        self._pool = WorkerPool(self._job, workers)
        self._scratch = Path(tempfile.mkdtemp(prefix="radialbeams-", dir=_roomy()))
        self._token = new_token()

    def close(self) -> None:
        self._pool.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def results(self, batches: Iterable[Sequence[Input]]) -> Iterator[list[Result]]:
        """The results of each batch, in order; the next batches are read ahead meanwhile."""
        waiting: deque[tuple[Path, Sequence[Input]]] = deque()

        def staged() -> Iterator[tuple[int, list[Item]]]:
            for number, batch in enumerate(batches):
                folder = Path(tempfile.mkdtemp(dir=self._scratch))
                waiting.append((folder, batch))
                yield number, [self._item(folder / str(n), item) for n, item in enumerate(batch)]

        for outcomes in self._pool.outcomes(staged()):
            folder, inputs = waiting.popleft()
            results = [self._result(item, out) for item, out in zip(inputs, outcomes, strict=True)]
            shutil.rmtree(folder)
            yield results

    def all_results(self, inputs: Iterable[Input]) -> Iterator[Result]:
        for results in self.results(in_batches(inputs)):
            yield from results

    def _item(self, path: Path, source: Input) -> Item:
        if source.content is None:
            return Item(str(path), error=source.error)
        path.write_bytes(source.content)
        out = f"{path}.out"
        return Item(str(path), out, part=part_of(out, self._token))

    def _result(self, source: Input, outcome: Outcome) -> Result:
        content = None
        if outcome.out is not None and outcome.sha256 is not None:
            content = Path(part_of(outcome.out, self._token)).read_bytes()
        return Result(replace(outcome, path=source.name, out=None), content)


def in_batches(inputs: Iterable[Input]) -> Iterator[list[Input]]:
    batch: list[Input] = []
    for item in inputs:
        batch.append(item)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _roomy() -> str | None:
    """The folder in shared memory if it has enough space; None: the system's default."""
    try:
        return str(IN_MEMORY) if shutil.disk_usage(IN_MEMORY).free >= ROOM else None
    except OSError:
        return None
