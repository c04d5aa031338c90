"""What a distributed run stores with its outputs: its settings, its plan, and its report.

The report is the folder `_report`, with one Parquet file per unit. A unit whose report exists is
done; a run that is resumed, or whose source has new files, processes the other units.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import radialbeams
from radialbeams import zoo
from radialbeams.batch import JobSettings, JournalError, Outcome, system
from radialbeams.batch.journal import difference
from radialbeams.batch.landing import new_token
from radialbeams.batch.locks import not_trusted
from radialbeams.engines.plan import Task, from_table, to_table
from radialbeams.engines.storage import (
    files_below,
    is_remote,
    join,
    opened,
    remove_folder,
    replace_file,
)
from radialbeams.limits import Limits
from radialbeams.stored import JsonDict

RECORD, REPORT, SETTINGS = ".radialbeams-ray", "_report", "settings.json"
LOCK = ".radialbeams-ray.lock"  # not in the folder above, which --fresh removes
COLUMNS = (
    *("path", "out", "angle_ccw", "confidence", "symmetry", "action", "error", "lost", "sha256"),
)


@contextmanager
def claimed(out: str) -> Iterator[None]:
    """Holds the lock of a local output folder; JournalError if another run holds it.

    The system releases it when this process ends, for whatever reason. The file stays: removing
    it could let two runs in. Object stores have no locks.
    """
    if is_remote(out):
        yield
        return
    system.make_folders(out)
    try:
        descriptor = system.open_own(join(out, LOCK), create=True)
    except system.Untrusted as error:
        raise not_trusted(Path(out, LOCK)) from error
    try:
        if not system.try_lock(descriptor):
            raise JournalError(
                f"Another run on Ray is working in {out}. Let it finish, or choose another output."
            )
        yield
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Record:
    """The record in one output folder or URL; `token` is part of its temporary file names."""

    out: str
    token: str

    @classmethod
    def exists(cls, out: str) -> bool:
        return _noted(join(join(out, RECORD), SETTINGS)) is not None

    @classmethod
    def begun(cls, out: str, settings: JsonDict, *, fresh: bool = False) -> Record:
        """A new record, or the existing one if it has the same settings."""
        path = join(join(out, RECORD), SETTINGS)
        if fresh:
            remove_folder(join(out, RECORD))
            remove_folder(join(out, REPORT))
        noted = _noted(path)
        if noted is None:
            noted = {"settings": settings, "token": new_token()}
            replace_file(path, json.dumps(noted).encode("ascii"))
        elif noted["settings"] != json.loads(json.dumps(settings)):
            raise JournalError(difference(out, noted["settings"], settings))
        return cls(out, noted["token"])

    # --- the plan ---

    def tasks(self) -> list[Task]:
        files = sorted(_parquet_files(join(self.out, RECORD)).items())
        return [task for _, path in files for task in from_table(_table(path))]

    def added(self, tasks: Sequence[Task]) -> list[Task]:
        """The plan, extended by those of these tasks that it lacks, in new units."""
        planned = self.tasks()
        keys = {(task.path, task.group) for task in planned}
        new = [task for task in tasks if (task.path, task.group) not in keys]
        if new:
            first = 1 + max((task.unit for task in planned), default=-1)
            numbers = {unit: first + n for n, unit in enumerate(sorted({t.unit for t in new}))}
            new = [replace(task, unit=numbers[task.unit]) for task in new]
            place = join(join(self.out, RECORD), f"plan-{first:06d}.parquet")
            replace_file(place, _as_parquet(to_table(new)))
        return [*planned, *new]

    # --- the report ---

    def write_report(self, unit: int, outcomes: Iterable[Outcome]) -> Any:
        table = report_table(outcomes)
        replace_file(self._report(unit), _as_parquet(table))
        return table

    def read_report(self, unit: int) -> list[Outcome]:
        return outcomes_of(_table(self._report(unit)))

    def reported(self) -> set[int]:
        """The units that are done."""
        names = _parquet_files(join(self.out, REPORT))
        return {int(name.removeprefix("part-").removesuffix(".parquet")) for name in names}

    def _report(self, unit: int) -> str:
        return join(join(self.out, REPORT), f"part-{unit:06d}.parquet")


def settings_of(job: JobSettings, sources: Sequence[str], out: str, column: str | None) -> JsonDict:
    """Everything that must be equal for a command to resume a run."""
    return {
        "version": radialbeams.__version__,
        "inputs": list(sources),
        "output": out,
        "column": column,
        **asdict(replace(job, limits=Limits())),  # raised limits may let failed files through
        "weights": zoo.find(job.model).card.sha256.onnx,
    }


def report_table(outcomes: Iterable[Outcome]) -> Any:
    import pyarrow as pa

    types = {"angle_ccw": pa.float64(), "confidence": pa.float64(), "symmetry": pa.int32()}
    rows = list(outcomes)
    return pa.table(
        {
            name: pa.array([getattr(row, name) for row in rows], types.get(name, pa.string()))
            for name in COLUMNS
        }
    )


def outcomes_of(table: Any) -> list[Outcome]:
    return [Outcome(**row) for row in table.select(list(COLUMNS)).to_pylist()]


def _noted(place: str) -> JsonDict | None:
    try:
        with opened(place) as file:
            noted: JsonDict = json.load(file)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise JournalError(
            f"{place}, the record of an earlier run, is damaged. Add --fresh to discard that run "
            "and start over."
        ) from error
    return noted


def _parquet_files(folder: str) -> dict[str, str]:
    return {name: path for name, path in files_below(folder).items() if name.endswith(".parquet")}


def _table(path: str) -> Any:
    import pyarrow.parquet as pq

    with opened(path) as file:
        return pq.read_table(file)


def _as_parquet(table: Any) -> bytes:
    import pyarrow.parquet as pq

    stream = BytesIO()
    pq.write_table(table, stream, compression="zstd")
    return stream.getvalue()
