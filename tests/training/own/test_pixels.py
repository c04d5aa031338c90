"""Decoded once, mapped from then on; whole or not there; a killed build goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from folders import picture, plain_folder, save
from PIL import Image

from radialbeams.files import sha256
from radialbeams.training.data import cache, load
from radialbeams.training.data.decoding import decode
from radialbeams.training.own import pixels
from radialbeams.training.own.pixels import ChangedImages, read
from radialbeams.training.own.scan import Scan, scan


@pytest.fixture
def found(tmp_path: Path) -> Scan:
    return scan(plain_folder(tmp_path / "photos", 24, (50, 40)))


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixels, "CHUNK_BYTES", 1)  # 16 images each, the least


def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many images each call decodes, from now on."""
    counts: list[int] = []
    plain = decode

    def counting(place: Path, entries: list, *args: int, **options: int) -> object:  # type: ignore[type-arg]
        counts.append(len(entries))
        return plain(place, entries, *args, **options)

    monkeypatch.setattr(pixels, "decode", counting)
    return counts


@pytest.mark.parametrize("channels", [1, 3])
def test_the_pixels_are_those_of_plain_decoding(found: Scan, tmp_path: Path, channels: int) -> None:
    expected = load(found.folder, size=32, channels=channels)
    images = read(found, range(24), 32, channels, tmp_path / "cache")
    assert (images.images == expected.images).all()
    assert images.keys == tuple(f"photo{i}.png" for i in range(24))
    assert images.name == "photos"


def test_only_the_requested_images_are_read_in_their_order(found: Scan, tmp_path: Path) -> None:
    everything = read(found, range(24), 32, 3, tmp_path / "cache")
    some = read(found, [5, 2, 9], 32, 3, tmp_path / "cache")
    assert some.keys == ("photo5.png", "photo2.png", "photo9.png")
    assert (some.images == everything.images[[5, 2, 9]]).all()


def test_exif_orientation_is_applied(tmp_path: Path) -> None:
    plain_folder(tmp_path / "photos", 10)
    upright = picture(50, (64, 64))
    exif = Image.Exif()
    exif[0x0112] = 3  # stored upside down
    upright.rotate(180).save(tmp_path / "photos" / "a.png", exif=exif)
    images = read(scan(tmp_path / "photos"), [0], 64, 3, tmp_path / "cache").images
    assert (images[0].numpy() == np.asarray(upright).transpose(2, 0, 1)).all()


def test_a_second_reading_decodes_nothing(
    found: Scan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read(found, range(24), 32, 3, tmp_path / "cache")
    counts = decoded(monkeypatch)
    assert (read(found, range(24), 32, 3, tmp_path / "cache").images == first.images).all()
    assert counts == []
    read(found, range(24), 30, 3, tmp_path / "cache")
    assert sum(counts) == 24


def test_the_images_are_mapped_and_can_be_released(found: Scan, tmp_path: Path) -> None:
    images = read(found, range(24), 32, 3, tmp_path / "cache")
    assert images.file is not None
    assert images.images.data_ptr() == images.file.ctypes.data
    before = images.images.clone()
    images.release()
    assert (images.images == before).all()


@pytest.mark.usefixtures("small_chunks")
def test_progress_counts_images(found: Scan, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    read(found, range(24), 32, 3, tmp_path / "cache", lambda *at: seen.append(at))
    assert seen == [(16, 24), (24, 24)]


class Killed(Exception):
    pass


@pytest.mark.usefixtures("small_chunks")
def test_a_killed_build_goes_on_and_shows_nothing_before_its_end(
    found: Scan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(done: int, total: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        read(found, range(24), 32, 3, tmp_path / "cache", kill)
    assert list((tmp_path / "cache").glob("*.bytes")) == []
    counts = decoded(monkeypatch)
    images = read(found, range(24), 32, 3, tmp_path / "cache")
    assert counts == [8]
    assert (images.images == load(found.folder, size=32).images).all()


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("place", ["building", "bytes"])
def test_only_damaged_chunks_are_decoded_again(
    found: Scan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    folder = tmp_path / "cache"
    expected = read(found, range(24), 32, 3, folder).images.clone()
    (path,) = folder.glob("*.bytes")
    if place == "building":  # killed between the last chunk and the index
        path.with_suffix(".json").unlink()
        path = path.rename(path.with_suffix(".building"))
    with path.open("r+b") as file:
        file.seek(20 * 3 * 32 * 32)
        file.write(b"damage")
    counts = decoded(monkeypatch)
    assert (read(found, range(24), 32, 3, folder).images == expected).all()
    assert counts == [8]


def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files whose checksums are computed, from now on."""
    paths: list[Path] = []

    def counting(path: Path) -> str:
        paths.append(path)
        return sha256(path)

    monkeypatch.setattr(cache, "sha256", counting)
    return paths


@pytest.mark.skipif(not pixels.BOOT.exists(), reason="needs to know when the system started")
def test_the_checksum_is_computed_again_only_if_the_file_was_touched_or_the_system_restarted(
    found: Scan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = read(found, range(24), 32, 3, tmp_path / "cache").images.clone()
    (path,) = (tmp_path / "cache").glob("*.bytes")
    paths = hashed(monkeypatch)
    assert (read(found, range(24), 32, 3, tmp_path / "cache").images == expected).all()
    assert paths == []
    os.utime(path)
    for _ in range(2):
        read(found, range(24), 32, 3, tmp_path / "cache")
        assert paths == [path]
    monkeypatch.setattr(pixels, "BOOT", tmp_path / "another start")
    pixels.BOOT.write_text("another")
    read(found, range(24), 32, 3, tmp_path / "cache")
    assert paths == [path, path]


def test_where_the_start_of_the_system_is_unknown_the_checksum_is_always_computed(
    found: Scan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pixels, "BOOT", tmp_path / "none")
    read(found, range(24), 32, 3, tmp_path / "cache")
    paths = hashed(monkeypatch)
    read(found, range(24), 32, 3, tmp_path / "cache")
    assert len(paths) == 1


def test_an_index_that_is_no_json_is_written_again(found: Scan, tmp_path: Path) -> None:
    expected = read(found, range(24), 32, 3, tmp_path / "cache").images.clone()
    (index,) = (tmp_path / "cache").glob("*.json")
    index.write_text("{half")
    assert (read(found, range(24), 32, 3, tmp_path / "cache").images == expected).all()


def test_an_image_that_changed_after_the_scan_is_refused(found: Scan, tmp_path: Path) -> None:
    save(picture(99, (50, 40)), found.folder / "photo7.png")
    with pytest.raises(ChangedImages, match=r"photo7.png cannot be used any more .*changed after"):
        read(found, range(24), 32, 3, tmp_path / "cache")


def test_a_full_disk_is_reported_before_the_work(
    found: Scan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda place: type("Usage", (), {"free": 10})())
    with pytest.raises(ValueError, match=r"Expected 0.0 GB of free space .* got 0.0 GB. Make room"):
        read(found, range(24), 32, 3, tmp_path / "cache")


def test_other_caches_read_the_same_file(found: Scan, tmp_path: Path) -> None:
    images = read(found, range(24), 32, 3, tmp_path / "cache")
    again = cache.read(tmp_path / "cache", "photos")
    assert again.keys == images.keys
    assert (again.images == images.images).all()


BUILD = """
import sys
from pathlib import Path
from radialbeams.training.own import pixels
from radialbeams.training.own.scan import scan
pixels.CHUNK_BYTES = 1
folder, cache = map(Path, sys.argv[1:])
found = scan(folder)
print("scanned", flush=True)
rows = range(len(found.images))
images = pixels.read(found, rows, 64, 3, cache, lambda *at: print(at, flush=True))
print(len(images), flush=True)
"""


def build(folder: Path, place: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BUILD, str(folder), str(place)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def children(process: int) -> list[int]:
    path = Path(f"/proc/{process}/task/{process}/children")
    return [int(one) for one in path.read_text().split()]


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_builds_that_are_killed_at_random_moments_end_whole_and_leave_no_process(
    tmp_path: Path,
) -> None:
    folder = plain_folder(tmp_path / "photos", 150, (100, 100))
    rng = np.random.default_rng(0)
    left: list[int] = []
    for _ in range(4):
        process = build(folder, tmp_path / "cache")
        assert process.stdout is not None
        for _ in range(int(rng.integers(1, 12))):
            process.stdout.readline()
        left += children(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
    process = build(folder, tmp_path / "cache")
    out, _ = process.communicate(timeout=120)
    assert out.splitlines()[-1] == "150"
    found = scan(folder)
    images = read(found, range(150), 64, 3, tmp_path / "cache")
    assert (images.images == load(folder, size=64).images).all()
    time.sleep(3)
    assert [one for one in left if Path(f"/proc/{one}").exists()] == []


@pytest.mark.long
def test_of_two_processes_one_builds_and_both_read(tmp_path: Path) -> None:
    folder = plain_folder(tmp_path / "photos", 100, (100, 100))
    both = [build(folder, tmp_path / "cache") for _ in range(2)]
    lines = [process.communicate(timeout=120)[0].splitlines() for process in both]
    assert [one[-1] for one in lines] == ["100", "100"]
    assert sum(len(one) > 2 for one in lines) == 1  # only one shows progress
