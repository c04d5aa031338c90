"""Units of work: the same bytes as the plain batch, whatever the images are stored in."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the ray extra is not installed; run `make test-ray`")
pytest.importorskip("fsspec", reason="the ray extra is not installed; run `make test-ray`")

import pyarrow as pa
import pyarrow.parquet as pq
from conftest import ROOT

from radialbeams.batch import JobSettings, Outcome, PlanError
from radialbeams.engines.columns import image_column
from radialbeams.engines.plan import kind_of, tasks_for
from radialbeams.engines.storage import Outputs
from radialbeams.engines.unit import Units

from .conftest import JOB, contents

TOKEN = "0" * 32


def carried_out(
    source: object, out: object, job: JobSettings = JOB, column: str | None = None
) -> list[Outcome]:
    """All units of a source, one after the other in this process."""
    tasks = tasks_for([str(source)], str(out), format=job.format, overwrite=False, workers=1)
    units = Units(job, Outputs(TOKEN), column)
    try:
        return [
            outcome
            for unit in sorted({task.unit for task in tasks})
            for outcome in units.outcomes([task for task in tasks if task.unit == unit])
        ]
    finally:
        units.close()


@pytest.fixture(scope="module")
def files(faces: Path) -> dict[str, bytes]:
    return {path.relative_to(faces).as_posix(): path.read_bytes() for path in faces.rglob("*.jpg")}


def test_a_folder_gives_the_bytes_of_the_plain_batch(
    faces: Path, plain: Path, tmp_path: Path
) -> None:
    outcomes = carried_out(faces, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(plain)
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    assert [Path(outcome.path).name for outcome in failed] == ["broken.jpg"]
    assert {outcome.action for outcome in outcomes} >= {"turned"}


def test_an_object_store_gives_the_bytes_of_the_plain_batch(
    faces: Path, plain: Path, bucket: str
) -> None:
    import fsspec

    store = fsspec.filesystem("s3")
    store.put(str(faces), "pictures/in", recursive=True)
    store.pipe_file("pictures/in/empty.jpg", b"")
    outcomes = carried_out(f"{bucket}/in", f"{bucket}/out")
    made = {
        path.removeprefix("pictures/out/"): store.cat(path) for path in store.find("pictures/out")
    }
    assert made == contents(plain)
    errors = {o.path: o.error for o in outcomes if o.error is not None}
    assert errors.keys() == {f"{bucket}/in/1/broken.jpg", f"{bucket}/in/empty.jpg"}
    assert "empty" in (errors[f"{bucket}/in/empty.jpg"] or "")


def test_an_object_that_appears_meanwhile_is_left_as_it_is(bucket: str) -> None:
    outputs = Outputs(TOKEN)
    place = f"{bucket}/out/photo.jpg"
    assert outputs.put(place, b"first") is None
    assert outputs.put(place, b"first") is None  # by a worker that died before its report
    assert "was left as it is" in (outputs.put(place, b"second") or "")
    assert Outputs(TOKEN, overwrite=True).put(place, b"second") is None


def test_a_file_that_appears_meanwhile_is_left_as_it_is(tmp_path: Path) -> None:
    outputs, place = Outputs(TOKEN), str(tmp_path / "photo.jpg")
    assert outputs.put(place, b"first") is None
    assert outputs.put(place, b"first") is None
    assert "was left as it is" in (outputs.put(place, b"second") or "")
    assert contents(tmp_path) == {"photo.jpg": b"first"}


@pytest.mark.parametrize("nested", [False, True], ids=["binary", "struct"])
def test_parquet_rows_keep_their_places_and_other_columns(
    files: dict[str, bytes], plain: Path, tmp_path: Path, nested: bool
) -> None:
    names = sorted(files)
    pictures: list[Any] = [files[name] for name in names]
    if nested:
        pictures = [
            {"bytes": content, "path": name} for content, name in zip(pictures, names, strict=True)
        ]
    table = pa.table({"image": pictures, "name": names, "number": range(len(names))})
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "faces.parquet", row_group_size=24)
    outcomes = carried_out(tmp_path / "in", tmp_path / "out")
    made = [pq.read_table(path) for path in sorted((tmp_path / "out").glob("*.parquet"))]
    assert [one.num_rows for one in made] == [24, len(names) - 24]
    rows = pa.concat_tables(made).to_pylist()
    turned = {row["name"]: row["image"]["bytes"] if nested else row["image"] for row in rows}
    assert turned.pop("1/broken.jpg") == b"no image"
    assert turned == contents(plain)
    assert [row["number"] for row in rows] == list(range(len(names)))
    (failed,) = [outcome for outcome in outcomes if outcome.error is not None]
    assert failed.path.endswith(f"faces.parquet#{names.index('1/broken.jpg')}")


def write_shard(path: Path, files: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True)
    with tarfile.open(path, "w") as shard:
        for name, content in sorted(files.items()):
            for member, data in ((name, content), (name[:-4] + ".txt", name.encode())):
                info = tarfile.TarInfo(member)
                info.size = len(data)
                shard.addfile(info, io.BytesIO(data))


def test_a_shard_keeps_its_members_and_their_order(
    files: dict[str, bytes], plain: Path, tmp_path: Path
) -> None:
    write_shard(tmp_path / "in" / "000.tar", files)
    outcomes = carried_out(tmp_path / "in", tmp_path / "out")
    with tarfile.open(tmp_path / "out" / "000.tar") as shard:
        members = {m.name: shard.extractfile(m).read() for m in shard}
    assert list(members) == [n for name in sorted(files) for n in (name, name[:-4] + ".txt")]
    pictures = {name: data for name, data in members.items() if name.endswith(".jpg")}
    assert pictures.pop("1/broken.jpg") == b"no image"
    assert pictures == contents(plain)
    assert len(outcomes) == len(files)


def test_another_format_renames_the_members(files: dict[str, bytes], tmp_path: Path) -> None:
    some = {name: files[name] for name in list(sorted(files))[:2]}
    write_shard(tmp_path / "in" / "000.tar", some)
    carried_out(tmp_path / "in", tmp_path / "out", replace(JOB, format="png"))
    with tarfile.open(tmp_path / "out" / "000.tar") as shard:
        assert {name.rpartition(".")[2] for name in shard.getnames()} == {"png", "txt"}


def test_a_damaged_shard_fails_alone(files: dict[str, bytes], tmp_path: Path) -> None:
    write_shard(tmp_path / "in" / "good.tar", {"face.jpg": files["0/0.jpg"]})
    (tmp_path / "in" / "bad.tar").write_bytes(b"no archive" * 100)
    bad, good = carried_out(tmp_path / "in", tmp_path / "out")
    assert bad.path.endswith("bad.tar") and bad.error
    assert good.error is None
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["good.tar"]


def test_outputs_that_were_there_before_are_skipped(faces: Path, tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "2.jpg").write_bytes(b"mine")
    outcomes = carried_out(faces, tmp_path)
    assert [Path(o.path).name for o in outcomes if o.action == "exists"] == ["2.jpg"]
    assert (tmp_path / "0" / "2.jpg").read_bytes() == b"mine"


def test_the_image_column_is_found_or_required() -> None:
    schema = pa.schema({"a": pa.binary(), "b": pa.binary(), "n": pa.int64()})
    assert image_column(schema, "b") == "b"
    with pytest.raises(ValueError, match=r"one column of image bytes; got a \(binary\).*--column"):
        image_column(schema)
    with pytest.raises(ValueError, match="image bytes in column n"):
        image_column(schema, "n")


def test_a_source_without_images_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no image")
    with pytest.raises(PlanError, match="Expected image files, Parquet files or WebDataset"):
        kind_of([str(tmp_path)])


def test_outputs_inside_the_source_are_refused(faces: Path) -> None:
    with pytest.raises(PlanError, match="lies inside the source"):
        tasks_for([str(faces)], f"{faces}/out", format=None, overwrite=False, workers=1)


def test_the_extra_is_declared() -> None:
    assert '\nray = ["ray[data]' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
