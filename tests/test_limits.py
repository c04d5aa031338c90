"""Limits on pixels, memory and file sizes: clear errors before anything is decoded."""

from __future__ import annotations

import io
import re
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import face
from PIL import Image

from radialbeams import batch
from radialbeams.batch import JobSettings, Plan, pool
from radialbeams.canonicalizer import Canonicalizer
from radialbeams.cli import main
from radialbeams.images import ImageError, read, read_small
from radialbeams.limits import MIB, Limits
from radialbeams.training.data.archives import read_files

FACES = "ring.lfw"


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def blank_png(width: int, height: int, bits: int, channels: int = 3) -> bytes:
    """All black, compressed about a thousandfold."""
    colour = {1: 0, 3: 2, 4: 6}[channels]
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    packer = zlib.compressobj(1)
    row = bytes(1 + width * channels * bits // 8)
    body = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    return b"".join(
        (b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", head), chunk(b"IDAT", body), chunk(b"IEND", b""))
    )


def sparse_tiff(path: Path, width: int, height: int) -> Path:
    """Uncompressed RGB that takes no room on the disk."""
    size = width * height * 3
    entries = [
        (256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 2),
        (273, 4, 1, 8), (277, 3, 1, 3), (278, 4, 1, height), (279, 4, 1, size),
    ]  # fmt: skip
    directory = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    with open(path, "wb") as file:
        file.write(b"II*\0" + struct.pack("<I", 8 + size))
        file.seek(8 + size)
        file.write(struct.pack("<H", len(entries)) + directory + bytes(4))
    return path


# --- pixels and memory ---


def test_sixteen_bits_that_would_need_gigabytes_are_refused_before_they_are_decoded() -> None:
    whole = blank_png(64, 64, 16)
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 13_300, 13_300, 16, 2, 0, 0, 0))
    data = whole[:8] + head + whole[33:] + bytes(60_000)  # its pixels would never come
    with pytest.raises(ImageError) as refused:
        read(data)
    assert re.fullmatch(
        r"Expected an image that needs at most 4\.0 GiB of memory; its 13300 × 13300 pixels need "
        r"about \d\d\.\d GiB\. Raise the limit with --max-memory .*\.",
        str(refused.value),
    )


def test_a_limit_of_pixels_is_the_callers() -> None:
    data = blank_png(300, 200, 8)
    with pytest.raises(ImageError, match=r"at most 0 million .* --max-pixels"):
        read(data, limits=Limits(pixels=59_999))
    assert read(data, limits=Limits(pixels=60_000)).image.size == (300, 200)
    with pytest.raises(ImageError, match="--max-pixels"):
        Canonicalizer(FACES, limits=Limits(pixels=59_999)).predict(data)


@pytest.mark.parametrize("bits", [8, 16])
def test_a_limit_of_memory_counts_channels_and_depth(bits: int) -> None:
    data = blank_png(1000, 1000, bits)
    with pytest.raises(ImageError, match="--max-memory"):
        read(data, limits=Limits(memory=100_000_000 if bits == 16 else 20_000_000))
    read(data, limits=Limits(memory=120_000_000 if bits == 16 else 45_000_000))


def test_a_progressive_jpeg_costs_memory_at_its_full_size() -> None:
    stream = io.BytesIO()
    Image.new("RGB", (2000, 2000)).save(stream, "JPEG", progressive=True)
    with pytest.raises(ImageError, match=r"2000 × 2000 .* --max-memory"):
        read_small(stream.getvalue(), 32, limits=Limits(memory=20_000_000))
    stream = io.BytesIO()
    Image.new("RGB", (2000, 2000)).save(stream, "JPEG")
    read_small(stream.getvalue(), 32, limits=Limits(memory=20_000_000))


@pytest.mark.parametrize("value", [0, -1])
def test_limits_are_positive(value: int) -> None:
    with pytest.raises(ValueError, match="memory must be at least 1; got"):
        Limits(memory=value)


# Memory at the peak, as the system counts it, of a worker that turns a given file.
PEAK = """
import re, sys
from pathlib import Path
from radialbeams.images import encode, read, turn

def peak():
    return 1024 * int(re.search("VmHWM:\\s*([0-9]+)", Path("/proc/self/status").read_text())[1])

before = peak()
encode(turn(read(sys.argv[1]), 45))
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("bits", "channels"), [(8, 3), (8, 4), (16, 1), (16, 3), (16, 4)])
def test_the_estimate_of_the_memory_is_an_upper_bound(
    tmp_path: Path, bits: int, channels: int
) -> None:
    path = tmp_path / "blank.png"
    path.write_bytes(blank_png(1600, 1600, bits, channels))
    done = subprocess.run([sys.executable, "-c", PEAK, path], capture_output=True, text=True)
    used = int(done.stdout)
    assert used > 1600 * 1600 * channels
    with pytest.raises(ImageError, match="--max-memory"):
        read(path, limits=Limits(memory=used))


# --- files ---


def test_a_huge_tail_behind_a_jpeg_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = face(tmp_path / "tail.jpg")
    with open(path, "r+b") as file:
        file.truncate(3 * 2**30)  # takes no room on the disk
    assert main(["angle", str(tmp_path), "--model", FACES]) == 1
    assert main(["upright", str(path), "-o", str(tmp_path / "out.jpg"), "--model", FACES]) == 1
    errors = capsys.readouterr().err
    assert errors.count("at most 512 MiB; got 3,072 MiB or more") == 2
    assert "--max-file-size" in errors


def test_a_stream_is_not_read_beyond_the_limit() -> None:
    class Endless(io.RawIOBase):
        given = 0

        def read(self, count: int = -1) -> bytes:
            assert count >= 0, "all of an endless stream was asked for"
            self.given += count
            return bytes(count)

    stream = Endless()
    with pytest.raises(ImageError, match="--max-file-size"):
        read(stream, limits=Limits(file_size=MIB))  # type: ignore[arg-type]
    assert stream.given == MIB + 1


def test_a_tiff_of_a_gigabyte_is_refused_by_size_pixels_and_memory(tmp_path: Path) -> None:
    path = sparse_tiff(tmp_path / "large.tif", 18_500, 18_000)
    assert path.stat().st_size > 999_000_000
    with pytest.raises(ImageError, match="--max-file-size"):
        read_small(path, 128)
    with pytest.raises(ImageError, match=r"--max-pixels|Pillow allows"):
        read_small(path, 128, limits=Limits(file_size=2**30))
    path = sparse_tiff(tmp_path / "other.tif", 13_000, 13_000)
    with pytest.raises(ImageError, match="--max-memory"):
        read(path)


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def tarred(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def unpacked(path: Path, files: dict[str, bytes]) -> Path:
    path.mkdir()
    for name, data in files.items():
        (path / name).write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("make", "name"), [(zipped, "a.zip"), (tarred, "a.tar.gz"), (unpacked, "a")]
)
def test_a_huge_member_of_an_archive_is_an_error_and_the_others_are_read(
    tmp_path: Path, make: Callable[[Path, dict[str, bytes]], Path], name: str
) -> None:
    place = make(tmp_path / name, {"bomb": bytes(5_000_000), "good": b"12"})
    found = dict(read_files(place, ["bomb", "good"], largest=1_000_000))
    assert found["good"] == b"12"
    assert str(found["bomb"]) == "Expected at most 1,000,000 bytes; got 5,000,000. Leave it out."


# --- workers ---

GREEDY = """
import numpy as np
from radialbeams.batch import worker
from radialbeams.canonicalizer import Canonicalizer
look = Canonicalizer.look

def greedy(self, path, **options):
    if "greedy" in path:
        np.ones(2**30, np.uint8)
    return look(self, path, **options)

Canonicalizer.look = greedy
worker.main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited on Linux only")
def test_a_worker_that_needs_too_much_memory_fails_at_that_file_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "COMMAND", [sys.executable, "-c", GREEDY])
    for name in ("1", "2-greedy", "3"):
        face(tmp_path / f"{name}.png")
    job = JobSettings(FACES, limits=Limits(memory=600 * MIB))
    with batch.unjournaled(job, Plan((str(tmp_path),), writes=False), 1) as run:
        errors = [outcome.error for outcome in run.outcomes]
    assert errors[0] is None and errors[2] is None
    assert errors[1] is not None and "0.6 GiB" in errors[1] and "--max-memory" in errors[1]


def test_the_limits_are_options_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "large.png").write_bytes(blank_png(1500, 1000, 16))
    face(tmp_path / "small.png")
    for option in (["--max-pixels", "1"], ["--max-memory", "0.1"], ["--max-file-size", "0.001"]):
        out = str(tmp_path / f"out{option[0]}")
        arguments = ["upright", str(tmp_path), "-o", out, "--model", FACES, "--min-confidence", "0"]
        assert main([*arguments, *option, "--min-angle", "0"]) == 1
        assert option[0] in capsys.readouterr().err


def test_a_run_with_raised_limits_goes_on(tmp_path: Path) -> None:
    face(tmp_path / "in" / "a.png")
    plan = Plan((str(tmp_path / "in"),), folder=tmp_path / "out")
    job = JobSettings(FACES, turns=True, writes=True, limits=Limits(pixels=100))
    with pytest.raises(KeyboardInterrupt), batch.journaled(job, plan, 1) as run:
        assert "--max-pixels" in str(next(run.outcomes).error)
        raise KeyboardInterrupt
    with batch.journaled(replace(job, limits=Limits()), plan, 1) as run:
        assert [outcome.action for outcome in run.outcomes] == ["turned"]


def test_an_output_that_exceeds_the_limits_of_inputs_gets_its_thumbnail(tmp_path: Path) -> None:
    path = face(tmp_path / "a.png", 45)  # the canvas nearly doubles
    job = JobSettings(
        FACES, turns=True, min_confidence=0, thumbnails=1, limits=Limits(pixels=128 * 128)
    )
    with batch.unjournaled(job, Plan((str(path),)), 1) as run:
        (outcome,) = run.outcomes
    assert outcome.error is None and outcome.after is not None


def test_arrays_and_images_have_no_file_to_limit() -> None:
    array = np.zeros((20, 30, 3), np.uint8)
    assert read(array, limits=Limits(file_size=1)).image.size == (30, 20)
