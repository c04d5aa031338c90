"""The batch step as functions on tables: Ray Data, Spark, pandas, plain Arrow.

Each function replaces the bytes in a column of images by those of the upright images, and adds the
columns of ADDED. An image that fails keeps its bytes, and `error` holds the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from radialbeams import zoo
from radialbeams.batch import JobSettings, with_thresholds
from radialbeams.engines.columns import bytes_of, image_column, with_bytes
from radialbeams.engines.record import report_table
from radialbeams.engines.step import MISSING, BytesStep, Input

ADDED = ("angle_ccw", "confidence", "symmetry", "action", "error")


def job_for(model: str = zoo.DEFAULT) -> JobSettings:
    """The default settings of `radialbeams upright`, with the thresholds of the model's card."""
    return with_thresholds(JobSettings(model, turns=True, writes=True), zoo.find(model).card)


class Upright:
    """Maps an Arrow table to an Arrow table, for Ray Data's `map_batches` with actors.

    The model is loaded once, in a worker process that is replaced if a file kills it.
    """

    def __init__(self, job: JobSettings | None = None, column: str | None = None) -> None:
        self._column = column
        self._step = BytesStep(job or job_for())

    def __call__(self, table: Any) -> Any:
        import pyarrow as pa

        if not table.num_rows:
            return table
        (rows,) = table.combine_chunks().to_batches()
        return pa.Table.from_batches([self.batch(rows)])

    def batch(self, rows: Any) -> Any:
        """The same for a record batch."""
        import pyarrow as pa

        name = image_column(rows.schema, self._column)
        contents = bytes_of(rows.column(name))
        inputs = (Input(str(n), content, MISSING) for n, content in enumerate(contents))
        results = list(self._step.all_results(inputs))
        upright = [
            before if result.content is None else result.content
            for before, result in zip(contents, results, strict=True)
        ]
        result_table = pa.Table.from_batches([with_bytes(rows, name, upright)])
        report = report_table(result.outcome for result in results)
        for added in ADDED:
            result_table = result_table.append_column(added, report.column(added))
        return result_table.combine_chunks().to_batches()[0]

    def close(self) -> None:
        self._step.close()


Batches = Iterator[Any]


def arrow_function(
    job: JobSettings | None = None, column: str | None = None
) -> Callable[[Batches], Batches]:
    """A function for Spark's `mapInArrow`, from an iterator of record batches to another."""

    def upright(batches: Batches) -> Batches:
        step = Upright(job, column)
        try:
            for rows in batches:
                yield step.batch(rows) if rows.num_rows else rows
        finally:
            step.close()

    return upright


def pandas_function(
    job: JobSettings | None = None, column: str | None = None
) -> Callable[[Batches], Batches]:
    """A function for Spark's `mapInPandas`, or for any iterator of pandas DataFrames."""

    def upright(frames: Batches) -> Batches:
        import pyarrow as pa

        step = Upright(job, column)
        try:
            for frame in frames:
                yield step(pa.Table.from_pandas(frame, preserve_index=False)).to_pandas()
        finally:
            step.close()

    return upright
