"""Decoding: threads and processes read the same, and say the same of what cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from radialbeams.training.data import decoding
from radialbeams.training.data.decoding import decode
from radialbeams.training.data.members import Member


@pytest.fixture
def entries(tmp_path: Path) -> list[Member]:
    """Nine pictures, one text, one name without a file, one that is made and not read."""
    for i in range(9):
        Image.new("RGB", (6, 8), (20 * i, 0, 255)).save(tmp_path / f"{i}.png")
    (tmp_path / "text.png").write_text("no picture")
    names = [*(f"{i}.png" for i in range(5)), "text.png", "gone.png"]
    names += [f"{i}.png" for i in range(5, 9)]
    made = Member("made", "made", "", lambda: Image.new("RGB", (4, 4), (1, 2, 3)))
    return [*(Member(name, name, "") for name in names), made]


def test_processes_read_what_threads_read(
    tmp_path: Path, entries: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, problems = decode(tmp_path, entries, 6, 3)
    monkeypatch.setattr(decoding, "MANY", 1)
    monkeypatch.setattr(decoding, "CHUNK", 5)
    processes, same_problems = decode(tmp_path, entries, 6, 3)
    np.testing.assert_array_equal(processes, threads)
    assert processes.shape == (10, 3, 6, 6)
    assert problems == same_problems == {5: "not an image", 6: "not found when it was read"}
    assert processes[5, 0, 0, 0] == 100 and processes[9, :, 0, 0].tolist() == [1, 2, 3]


def test_nothing_is_left_behind_between_two_sets(
    tmp_path: Path, entries: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "MANY", 1)
    decode(tmp_path, entries, 6, 3)
    assert decoding._work is None
    with pytest.raises(RuntimeError, match="without its work"):
        decoding._read_rows(range(1))


def test_gray_and_empty(tmp_path: Path, entries: list[Member]) -> None:
    gray, _ = decode(tmp_path, entries[:2], 4, 1)
    assert gray.shape == (2, 1, 4, 4)
    none, problems = decode(tmp_path, [], 4, 3)
    assert none.shape == (0, 3, 4, 4) and not problems
