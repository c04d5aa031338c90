"""The plan of a distributed run: units of work, fixed before the run starts.

A unit is what one report covers: a few hundred image files, one row group of a Parquet file, or
one WebDataset shard. A unit is done when its report exists.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from radialbeams.batch import Plan, PlanError
from radialbeams.batch.plan import BATCH
from radialbeams.batch.walk import FORMATS, SUFFIXES, natural
from radialbeams.engines.storage import files_below, is_remote, join, opened

Kind = Literal["images", "parquet", "webdataset"]
ENDINGS: dict[Kind, tuple[str, ...]] = {
    "images": tuple(SUFFIXES),
    "parquet": (".parquet",),
    "webdataset": (".tar",),
}
# Enough units to keep all workers busy, few enough that their reports cost next to nothing.
UNITS_A_WORKER, MOST_IN_A_UNIT = 8, 1024


@dataclass(frozen=True)
class Task:
    """One row of the plan: an image file, a row group of a Parquet file, or a shard."""

    unit: int
    kind: Kind
    path: str
    out: str | None
    group: int | None = None  # the number of the row group in a Parquet file
    error: str | None = None  # known before the file is read
    exists: bool = False  # the output existed when the plan was made, and is left as it is


def tasks_for(
    sources: Sequence[str], out: str, *, format: str | None, overwrite: bool, workers: int
) -> list[Task]:
    """All tasks, in units numbered from 0; outputs get the same names as in the plain batch."""
    _check_apart(sources, out)
    kind = kind_of(sources)
    if kind == "images":
        tasks = list(_images(sources, out, format, overwrite))
        return _in_units(tasks, workers)
    files = _files(sources, kind)
    rows = _row_groups(files, out) if kind == "parquet" else _shards(files, out)
    tasks = [replace(task, unit=unit) for unit, task in enumerate(rows)]
    return tasks if overwrite else _marked(tasks, out)


def _check_apart(sources: Sequence[str], out: str) -> None:
    for source in sources:
        if f"{out.rstrip('/')}/".startswith(f"{source.rstrip('/')}/"):
            raise PlanError(
                f"The output {out} lies inside the source {source}, so a later run would read the "
                "outputs as inputs. Choose another output."
            )


def kind_of(sources: Sequence[str]) -> Kind:
    """The kind of the sources by file extension: images if any, else Parquet, else shards."""
    names = [name.lower() for source in sources for name in _names(source)]
    for kind, endings in ENDINGS.items():
        if any(name.endswith(endings) for name in names):
            return kind
    raise PlanError(
        f"Expected image files, Parquet files or WebDataset shards (.tar) in "
        f"{', '.join(sources)}; found none. Check the path or URL."
    )


def _names(source: str) -> Iterable[str]:
    if is_remote(source) or not os.path.isdir(source):
        return files_below(source)
    plan = Plan((source,), writes=False)
    first = next((file.path for file in plan.files() if file.error is None), None)
    return files_below(source) if first is None else [first]


# --- image files ---


def _images(
    sources: Sequence[str], out: str, format: str | None, overwrite: bool
) -> Iterator[Task]:
    remote = [is_remote(source) for source in sources]
    if not any(remote) and not is_remote(out):
        items = Plan(tuple(sources), folder=Path(out), overwrite=overwrite, format=format).items()
        for item in items:
            exists = not overwrite and item.out is not None and os.path.lexists(item.out)
            yield Task(0, "images", item.path, item.out, error=item.error, exists=exists)
        return
    endings = ENDINGS["images"]
    files = {name: path for name, path in _below(sources).items() if _ends(name, endings)}
    tasks = [
        Task(0, "images", files[name], join(out, _renamed(name, format)))
        for name in sorted(files, key=natural)
    ]
    yield from tasks if overwrite else _marked(tasks, out)


def _renamed(name: str, format: str | None) -> str:
    stem, suffix = os.path.splitext(name)
    fits = format is None or suffix.lower() in FORMATS[format]
    return name if fits or format is None else stem + FORMATS[format][0]


def _in_units(tasks: list[Task], workers: int) -> list[Task]:
    """Assigns units of whole batches, so that the batches are the same as in a plain run.

    Each worker gets as many units of the same size, so that all end at about the same time.
    """
    rounds = max(UNITS_A_WORKER, -(-len(tasks) // (workers * MOST_IN_A_UNIT)))
    size = max(1, -(-len(tasks) // (workers * rounds * BATCH))) * BATCH
    return [replace(task, unit=number // size) for number, task in enumerate(tasks)]


# --- files that hold many images ---


def _files(sources: Sequence[str], kind: Kind) -> dict[str, str]:
    files = {name: path for name, path in _below(sources).items() if _ends(name, ENDINGS[kind])}
    return {name: files[name] for name in sorted(files, key=natural)}


def _row_groups(files: dict[str, str], out: str) -> Iterator[Task]:
    """One task per row group. A file with one group keeps its name; others become several files."""
    for name, path in files.items():
        count = _count_row_groups(path)
        stem = join(out, name.removesuffix(".parquet"))
        for group in range(count):
            place = f"{stem}.parquet" if count == 1 else f"{stem}-{group:05d}.parquet"
            yield Task(0, "parquet", path, place, group)


def _count_row_groups(path: str) -> int:
    import pyarrow.parquet as pq

    with opened(path) as file:
        try:
            count: int = pq.ParquetFile(file).num_row_groups
        except ValueError as error:  # the base class of pyarrow's errors
            raise PlanError(f"{path} is not a Parquet file ({error}). Remove it.") from error
    return count


def _shards(files: dict[str, str], out: str) -> Iterator[Task]:
    for name, path in files.items():
        yield Task(0, "webdataset", path, join(out, name))


# --- both ---


def _below(sources: Sequence[str]) -> dict[str, str]:
    if len(sources) > 1:
        raise PlanError(
            "Expected one source for URLs, Parquet files or shards; got several. Run the command "
            "once for each, with a separate output."
        )
    return files_below(sources[0])


def _ends(name: str, endings: tuple[str, ...]) -> bool:
    return name.lower().endswith(endings)


def _marked(tasks: list[Task], out: str) -> list[Task]:
    """Marks the tasks whose outputs exist, by listing the output folder once."""
    existing = set(files_below(out).values())
    absolute = existing if is_remote(out) else {os.path.realpath(path) for path in existing}
    place = str if is_remote(out) else os.path.realpath
    return [replace(task, exists=place(task.out or "") in absolute) for task in tasks]


# --- as a table ---


def to_table(tasks: Sequence[Task]) -> Any:
    import pyarrow as pa

    fields = [
        *(("unit", pa.int32()), ("kind", pa.string()), ("path", pa.string())),
        *(("out", pa.string()), ("group", pa.int32()), ("error", pa.string())),
        ("exists", pa.bool_()),
    ]
    columns = {name: pa.array([getattr(t, name) for t in tasks], type) for name, type in fields}
    return pa.table(columns)


def from_table(table: Any) -> list[Task]:
    return [Task(**row) for row in table.to_pylist()]
