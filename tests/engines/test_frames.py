"""Tables of images: the same step as a function for Ray Data, Spark and pandas."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="the ray extra is not installed; run `make test-ray`")

import pyarrow as pa

from radialbeams.engines.frames import ADDED, Upright, arrow_function, job_for, pandas_function

from .conftest import JOB, contents


@pytest.fixture(scope="module")
def table(faces: Path) -> pa.Table:
    names = [path.relative_to(faces).as_posix() for path in sorted(faces.rglob("*.jpg"))]
    pictures = [(faces / name).read_bytes() for name in names]
    return pa.table({"name": [*names, "none"], "image": [*pictures, None]})


def check(made: pa.Table, table: pa.Table, plain: Path) -> None:
    rows = {row.pop("name"): row for row in made.to_pylist()}
    expected = contents(plain)
    assert {name: rows[name]["image"] for name in expected} == expected
    assert rows["1/broken.jpg"]["image"] == b"no image"
    assert "It is not an image" in rows["1/broken.jpg"]["error"]
    assert rows["none"]["error"] == "This row has no image."
    assert made.column_names == [*table.column_names, *ADDED]


def test_a_table_gets_the_bytes_of_the_plain_batch(table: pa.Table, plain: Path) -> None:
    step = Upright(JOB)
    check(step(table), table, plain)
    assert step(table.slice(0, 0)).num_rows == 0
    step.close()


def test_record_batches_pass_one_by_one(table: pa.Table, plain: Path) -> None:
    batches = table.to_batches(max_chunksize=16)
    made = pa.Table.from_batches(arrow_function(JOB)(iter(batches)))
    check(made, table, plain)


def test_pandas_frames_pass_one_by_one(table: pa.Table, plain: Path) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed; run `make test-ray`")
    frames = [table.slice(0, 16).to_pandas(), table.slice(16).to_pandas()]
    first, second = pandas_function(JOB)(iter(frames))
    assert len(first) == 16
    rows = [row for frame in (first, second) for row in frame.itertuples()]
    turned = {row.name: row.image for row in rows}
    expected = contents(plain)
    assert {name: turned[name] for name in expected} == expected


def test_the_thresholds_are_those_of_the_card() -> None:
    from radialbeams import defaults, zoo

    assert job_for("ring.lfw").thresholds == defaults.thresholds_of(zoo.find("ring.lfw").card)
