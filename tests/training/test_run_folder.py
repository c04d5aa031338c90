"""The log of a run, read back."""

from __future__ import annotations

from pathlib import Path

from radialbeams.training.run_folder import RunFolder


def test_a_run_that_logged_nothing_has_no_lines(tmp_path: Path) -> None:
    assert RunFolder(tmp_path).lines() == []


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2}\n{"st', encoding="utf-8")
    assert RunFolder(tmp_path).lines() == [{"step": 1}, {"step": 2}]
