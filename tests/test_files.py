"""Files: whole or not at all, hashed alike everywhere, and sorted as people count."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from radialbeams.files import (
    bucket,
    claimed,
    natural_order,
    natural_order_in_any_case,
    sha256,
    write_whole,
)


def half_written(partial: Path) -> None:
    partial.write_text("half")
    raise OSError("disk full")


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="disk full"):
        write_whole(tmp_path / "new.txt", half_written)
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_old_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_text("old")
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, half_written)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["old.txt"]


def test_the_file_is_not_there_while_it_is_written(tmp_path: Path) -> None:
    path, seen = tmp_path / "deep" / "new.txt", []

    def write(partial: Path) -> None:
        partial.write_text("new")
        seen.append(path.exists())

    write_whole(path, write)
    assert seen == [False]
    assert path.read_text() == "new"


def test_a_writer_that_makes_a_private_file_does_not_leave_it_private(tmp_path: Path) -> None:
    def privately(partial: Path) -> None:
        partial.unlink()
        os.close(os.open(partial, os.O_CREAT | os.O_WRONLY, 0o600))

    (tmp_path / "usual.txt").touch()
    write_whole(tmp_path / "new.txt", privately)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("usual.txt", "new.txt")]
    assert modes[0] == modes[1]


def test_a_file_and_its_bytes_have_the_same_hash(tmp_path: Path) -> None:
    content = b"radial beams" * 100_000
    (tmp_path / "file").write_bytes(content)
    assert sha256(tmp_path / "file") == sha256(content) == hashlib.sha256(content).hexdigest()


def test_keys_fall_evenly_into_buckets_and_always_into_the_same() -> None:
    assert bucket("obj1__0", 5) == int(hashlib.sha256(b"obj1__0").hexdigest(), 16) % 5
    counts = Counter(bucket(str(number), 5) for number in range(5000))
    assert sorted(counts) == [0, 1, 2, 3, 4]
    assert min(counts.values()) > 900


def test_a_name_that_is_no_utf8_has_a_bucket() -> None:
    assert bucket(os.fsdecode(b"caf\xe9"), 5) in range(5)


def test_numbers_are_sorted_as_people_count() -> None:
    names = ["obj10__5", "obj2__10", "obj2__5", "a", "obj2__05"]
    assert sorted(names, key=natural_order) == ["a", "obj2__05", "obj2__5", "obj2__10", "obj10__5"]


def test_file_managers_ignore_case() -> None:
    names = ["b.jpg", "10.jpg", "A.jpg", "2.jpg"]
    shown = ["2.jpg", "10.jpg", "A.jpg", "b.jpg"]
    assert sorted(names, key=natural_order_in_any_case) == shown


HOLD = """
import sys, time
from pathlib import Path
from radialbeams.files import claimed
with claimed(Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    time.sleep(60)
"""


def test_a_claim_is_one_processs_and_ends_with_it(tmp_path: Path) -> None:
    place = tmp_path / "row.claimed"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(place)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "True\n"
        with claimed(place) as mine:
            assert not mine
        other.kill()
    with claimed(place) as mine:
        assert mine
    assert not place.exists()
