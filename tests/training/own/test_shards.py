"""Tar shards and zips as input: the same images as from a folder."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from folders import plain_folder

from radialbeams.training.own import scan as module
from radialbeams.training.own.pixels import read
from radialbeams.training.own.scan import scan
from radialbeams.training.own.shards import Stored, stored_images


def shard(path: Path, files: list[Path], prefix: str = "") -> None:
    """As WebDataset writes it: an image and its label for each sample."""
    with tarfile.open(path, "w") as tar:
        for file in files:
            tar.add(file, f"{prefix}{file.name}")
            label = tarfile.TarInfo(f"{prefix}{file.stem}.cls")
            label.size = 1
            tar.addfile(label, io.BytesIO(b"7"))


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    files = sorted(plain_folder(tmp_path / "photos", 12).iterdir())
    (tmp_path / "shards").mkdir()
    shard(tmp_path / "shards" / "part-0.tar", files[:6])
    shard(tmp_path / "shards" / "part-1.tar", files[6:], "cat/")
    return tmp_path


def test_shards_give_the_images_of_the_folder(
    shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEW_FILES", 2)  # by several processes
    folder, packed = scan(shards / "photos"), scan(shards / "shards")
    assert {i.sha256: i.size for i in packed.images} == {i.sha256: i.size for i in folder.images}
    assert packed.images[0].path.startswith("part-0.tar/photo")
    assert [image.group for image in packed.images] == [""] * 6 + ["cat"] * 6
    order = {image.sha256: row for row, image in enumerate(packed.images)}
    rows = [order[image.sha256] for image in folder.images]
    one = read(folder, range(12), 32, 3, shards / "cache")
    other = read(packed, rows, 32, 3, shards / "other cache")
    assert (one.images == other.images).all()


def test_one_shard_and_a_zip_are_read_as_they_are(shards: Path) -> None:
    with zipfile.ZipFile(shards / "photos.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in (shards / "photos").iterdir():
            archive.write(file, f"dog/{file.name}")
    found = scan(shards / "photos.zip")
    assert len(found.images) == 12
    assert {image.group for image in found.images} == {"dog"}
    read(found, range(12), 32, 3, shards / "cache")
    assert len(stored_images(shards / "shards" / "part-1.tar")[0]) == 6


def test_a_damaged_shard_fails_alone(shards: Path) -> None:
    damaged = shards / "shards" / "part-2.tar"
    damaged.write_bytes(b"no tar at all")
    found = scan(shards / "shards")
    assert len(found.images) == 12
    ((path, reason),) = [(one.path, one.reason) for one in found.skipped]
    assert path == "part-2.tar"
    assert reason.startswith("It is damaged or cut short")
    with pytest.raises(ValueError, match=r"a tar or a zip of images; got .*part-2.tar. It is dam"):
        scan(damaged)


def test_a_shard_that_lost_its_end_keeps_what_is_whole(shards: Path) -> None:
    path = shards / "shards" / "part-1.tar"
    last = stored_images(path)[0][-1]
    assert last.offset is not None
    path.write_bytes(path.read_bytes()[: last.offset + 40])
    found = scan(shards / "shards")
    assert len(found.images) == 11
    assert "part-1.tar" in [one.path for one in found.skipped]


def test_a_compressed_tar_is_refused_with_what_to_do(tmp_path: Path) -> None:
    files = sorted(plain_folder(tmp_path / "photos", 10).iterdir())
    with tarfile.open(tmp_path / "photos.tar.gz", "w:gz") as tar:
        for file in files:
            tar.add(file, file.name)
    with pytest.raises(ValueError, match=r"It is compressed, .* Decompress it first"):
        scan(tmp_path / "photos.tar.gz")


def test_the_name_inside_a_shard_is_without_the_shard() -> None:
    inside = Stored("a.tar/cat/1.jpg", "a.tar", 512, 10)
    assert inside.name.as_posix() == "cat/1.jpg"
    assert Stored("cat/1.jpg", "cat/1.jpg").name.as_posix() == "cat/1.jpg"
