"""Processes one unit of work: reads its inputs, writes its outputs, returns its outcomes."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import BytesIO
from itertools import islice
from typing import IO, Any

from radialbeams.batch import JobSettings, Outcome
from radialbeams.batch.landing import OutputError, part_of
from radialbeams.batch.plan import Item, batches, format_of
from radialbeams.batch.pool import WorkerPool
from radialbeams.batch.walk import FORMATS
from radialbeams.engines.columns import bytes_of, image_column, with_bytes
from radialbeams.engines.plan import Task
from radialbeams.engines.step import MISSING, BytesStep, Input, Result, in_batches
from radialbeams.engines.storage import Outputs, is_remote, opened, read

TRANSFERS = 16  # at a time: an object store has a high latency, but serves many requests at once


class Units:
    """Processes units with one worker process, which is started once."""

    def __init__(self, job: JobSettings, outputs: Outputs, column: str | None = None) -> None:
        self._job, self._outputs, self._column = job, outputs, column
        self._step: BytesStep | None = None
        self._pool: WorkerPool | None = None
        self._threads = ThreadPoolExecutor(TRANSFERS)

    def close(self) -> None:
        for part in (self._step, self._pool):
            if part is not None:
                part.close()
        self._threads.shutdown(cancel_futures=True)

    def outcomes(self, tasks: Sequence[Task]) -> list[Outcome]:
        """The outcomes of one unit, in the order of the plan."""
        open_tasks = [task for task in tasks if not task.exists]
        outcomes = iter(self._done(open_tasks))
        if tasks[0].kind == "images":
            return [_existing(task) if task.exists else next(outcomes) for task in tasks]
        return [*(_existing(task) for task in tasks if task.exists), *outcomes]

    def _done(self, tasks: Sequence[Task]) -> Iterable[Outcome]:
        if not tasks:
            return []
        if tasks[0].kind == "parquet":
            return [outcome for task in tasks for outcome in self._whole(task, self._parquet)]
        if tasks[0].kind == "webdataset":
            return [outcome for task in tasks for outcome in self._whole(task, self._shard)]
        remote = any(is_remote(path) for task in tasks for path in (task.path, task.out or ""))
        return self._remote(tasks) if remote else self._local(tasks)

    # --- image files ---

    def _local(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """The worker itself reads the inputs and writes the outputs under temporary names."""
        token = self._outputs.token
        items = [
            Item(t.path, t.out, t.error, None if t.out is None else part_of(t.out, token))
            for t in tasks
        ]
        if self._pool is None:
            # `Outputs.land` decides whether an existing output may be replaced.
            self._pool = WorkerPool(replace(self._job, overwrite=True), 1)
        for outcomes in self._pool.outcomes(enumerate(batches(items))):
            yield from map(self._outputs.land, outcomes)

    def _remote(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        rest = iter(tasks)
        chunks = iter(lambda: list(islice(rest, TRANSFERS)), [])
        inputs = (item for chunk in chunks for item in self._threads.map(self._input, chunk))
        places = iter(tasks)
        for results in self._bytes_step().results(in_batches(inputs)):
            outs = [next(places).out for _ in results]
            yield from self._threads.map(self._put, results, outs)

    def _input(self, task: Task) -> Input:
        if task.error is not None:
            return Input(task.path, None, task.error)
        try:
            return Input(task.path, read(task.path, self._job.limits))
        except (OSError, ValueError) as error:
            return Input(task.path, None, _sentence(error))

    def _put(self, result: Result, out: str | None) -> Outcome:
        if result.content is None or out is None:
            return result.outcome
        try:
            problem = self._outputs.put(out, result.content)
        except (OSError, OutputError) as error:
            problem = _sentence(error)
        if problem is not None:
            return Outcome(result.outcome.path, error=problem)
        return replace(result.outcome, out=out)

    # --- files that hold many images ---

    def _whole(self, task: Task, write: Any) -> list[Outcome]:
        """The outcomes of all images in a file, or a single one if the file itself failed."""
        if task.out is None:
            return [Outcome(task.path, error=task.error)]
        try:
            with self._outputs.draft(task.out) as draft:
                outcomes: list[Outcome] = write(task, draft)
                problem = self._outputs.publish(draft, task.out)
        except (OSError, OutputError, ValueError, tarfile.TarError) as error:
            return [Outcome(task.path, error=_sentence(error))]
        if problem is not None:
            return [Outcome(task.path, error=problem)]
        return [replace(outcome, out=task.out) for outcome in outcomes]

    def _parquet(self, task: Task, draft: str) -> list[Outcome]:
        import pyarrow.parquet as pq

        outcomes: list[Outcome] = []
        with opened(task.path) as file:
            source = pq.ParquetFile(file)
            name = image_column(source.schema_arrow, self._column)
            group = 0 if task.group is None else task.group
            first = sum(source.metadata.row_group(n).num_rows for n in range(group))
            with pq.ParquetWriter(draft, source.schema_arrow) as writer:
                for rows in source.iter_batches(batch_size=256, row_groups=[group]):
                    contents = bytes_of(rows.column(name))
                    inputs = (
                        _row(f"{task.path}#{first + len(outcomes) + n}", content)
                        for n, content in enumerate(contents)
                    )
                    results = list(self._bytes_step().all_results(inputs))
                    outcomes += [result.outcome for result in results]
                    # No row is dropped: an image that failed keeps its bytes.
                    upright = [
                        before if result.content is None else result.content
                        for before, result in zip(contents, results, strict=True)
                    ]
                    writer.write_batch(with_bytes(rows, name, upright))
        return outcomes

    def _shard(self, task: Task, draft: str) -> list[Outcome]:
        """Members keep their order; those that are not images, or that fail, are copied."""
        outcomes: list[Outcome] = []
        with (
            opened(task.path) as file,
            tarfile.open(fileobj=file, mode="r|") as source,
            tarfile.open(draft, "w", format=tarfile.PAX_FORMAT) as shard,
        ):
            members = _members(source)
            while chunk := list(islice(members, 256)):
                images = [Input(f"{task.path}#{m.name}", c) for m, c in chunk if _is_image(m)]
                results = iter(list(self._bytes_step().all_results(images)))
                for member, content in chunk:
                    if _is_image(member):
                        result = next(results)
                        outcomes.append(result.outcome)
                        if result.content is not None:
                            content = result.content
                            member.name = self._member_name(member.name)
                    _add(shard, member, content)
        return outcomes

    def _member_name(self, name: str) -> str:
        if self._job.format is None or format_of(name) == self._job.format:
            return name
        return name.rpartition(".")[0] + FORMATS[self._job.format][0]

    def _bytes_step(self) -> BytesStep:
        if self._step is None:
            self._step = BytesStep(self._job)
        return self._step


def _existing(task: Task) -> Outcome:
    return Outcome(task.path, task.out, action="exists")


def _row(name: str, content: bytes | None) -> Input:
    return Input(name, content, MISSING)


def _members(source: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, bytes | None]]:
    for member in source:
        file = source.extractfile(member) if member.isreg() else None
        yield member, None if file is None else file.read()


def _is_image(member: tarfile.TarInfo) -> bool:
    return member.isreg() and format_of(member.name) is not None


def _add(shard: tarfile.TarFile, member: tarfile.TarInfo, content: bytes | None) -> None:
    stream: IO[bytes] | None = None
    if content is not None:
        member.size, stream = len(content), BytesIO(content)
    shard.addfile(member, stream)


def _sentence(error: Exception) -> str:
    """The system's error message, or the exception's own, as for object stores."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text if text.endswith(".") else f"{text}."
