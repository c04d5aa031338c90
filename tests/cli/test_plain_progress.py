"""Lines of progress where there is no terminal."""

from __future__ import annotations

import time

import pytest

from radialbeams.cli import plain_progress, terminal


def test_lines_come_at_intervals_with_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    lines: list[str] = []
    progress = plain_progress.PlainProgress(1000, lines.append)
    for seconds, step in ((0, 200), (4, 240), (10, 300), (15, 350), (20, 400)):
        now[0] = 100.0 + seconds
        progress.show(step, "training")
    assert lines == [
        "training, 200 of 1,000",
        "training, 300 of 1,000, about 1:10 left",
        "training, 400 of 1,000, about 1:00 left",
    ]


def test_a_pipe_gets_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.progress_bar(5, "training") as bar:
        bar.show(1, "training")
    assert capsys.readouterr().err == "training, 1 of 5\n"


def test_hours_are_shown_if_there_are_any() -> None:
    assert [plain_progress.clock(s) for s in (9, 75, 3725)] == ["0:09", "1:15", "1:02:05"]
