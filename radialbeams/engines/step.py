"""The batch step on bytes: the same workers as the plain batch, fed from memory.

A worker opens files, because only then can it be limited and replaced when a file kills it. So the
bytes pass through a scratch folder, in memory where the system has room for one there.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from radialbeams.batch import JobSettings, Outcome
from radialbeams.batch.landing import new_token, part_of
from radialbeams.batch.plan import BATCH, Item
from radialbeams.batch.pool import WorkerPool

IN_MEMORY = Path("/dev/shm")
MISSING = "This row has no image."
ROOM = 2 * 2**30  # bytes that must be free there: several batches of large photos


@dataclass(frozen=True)
class Input:
    """An image under the name that its outcome carries. Without content it has failed: `error`."""

    name: str
    content: bytes | None
    error: str | None = None


@dataclass(frozen=True)
class Result:
    """An outcome, and the bytes of its output (None where the image failed)."""

    outcome: Outcome
    content: bytes | None


class BytesStep:
    """Turns images in memory, in batches that are cut at the same places as the plain batch's."""

    def __init__(self, job: JobSettings, workers: int = 1) -> None:
        # Each output goes to a fresh place in the scratch folder; the caller guards the real one.
        self._job = replace(job, overwrite=True)
        self._pool = WorkerPool(self._job, workers)
        self._scratch = Path(tempfile.mkdtemp(prefix="radialbeams-", dir=_roomy()))
        self._token = new_token()

    def __enter__(self) -> BytesStep:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._pool.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def results(self, batches: Iterable[Sequence[Input]]) -> Iterator[list[Result]]:
        """In order; while the workers are busy, the next batches are already read."""
        waiting: deque[tuple[Path, Sequence[Input]]] = deque()

        def written() -> Iterator[tuple[int, list[Item]]]:
            for number, batch in enumerate(batches):
                folder = Path(tempfile.mkdtemp(dir=self._scratch))
                waiting.append((folder, batch))
                yield number, [self._item(folder / str(n), one) for n, one in enumerate(batch)]

        for outcomes in self._pool.outcomes(written()):
            folder, inputs = waiting.popleft()
            results = [self._result(one, out) for one, out in zip(inputs, outcomes, strict=True)]
            shutil.rmtree(folder)
            yield results

    def all_results(self, inputs: Iterable[Input]) -> Iterator[Result]:
        for results in self.results(in_batches(inputs)):
            yield from results

    def _item(self, path: Path, given: Input) -> Item:
        if given.content is None:
            return Item(str(path), error=given.error)
        path.write_bytes(given.content)
        out = f"{path}.out"
        return Item(str(path), out, part=part_of(out, self._token))

    def _result(self, given: Input, outcome: Outcome) -> Result:
        content = None
        if outcome.out is not None and outcome.sha256 is not None:
            content = Path(part_of(outcome.out, self._token)).read_bytes()
        return Result(replace(outcome, path=given.name, out=None), content)


def in_batches(inputs: Iterable[Input]) -> Iterator[list[Input]]:
    batch: list[Input] = []
    for one in inputs:
        batch.append(one)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _roomy() -> str | None:
    """A folder in memory if it has room; None: the system's own choice."""
    try:
        return str(IN_MEMORY) if shutil.disk_usage(IN_MEMORY).free >= ROOM else None
    except OSError:
        return None
