"""One run at a time in an output folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from radialbeams.batch import JournalError
from radialbeams.engines.record import LOCK, claimed

HOLDING = """
import sys, time
from radialbeams.engines.record import claimed
with claimed(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_run_in_the_same_output_is_refused_until_the_first_has_died(
    tmp_path: Path,
) -> None:
    out = str(tmp_path / "out")
    command = [sys.executable, "-c", HOLDING, out]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout is not None and first.stdout.readline() == "held\n"
        with pytest.raises(JournalError, match="Another run on Ray is working in"), claimed(out):
            pass
    finally:
        first.kill()
        first.communicate()
    with claimed(out):
        assert (tmp_path / "out" / LOCK).is_file()


def test_a_planted_lock_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / LOCK).symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(JournalError, match="was not created by a run of yours"),
        claimed(str(tmp_path)),
    ):
        pass


def test_an_object_store_has_no_lock() -> None:
    with claimed("s3://bucket/out"), claimed("s3://bucket/out"):
        pass
