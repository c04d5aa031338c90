"""The tutorial runs from top to bottom and prints what stands below each snippet."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from radialbeams.front.pose import Pose

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "in-front-of-your-model.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```\s+```text\n(.*?)```", PAGE, re.DOTALL)
# How far a number may be off from one machine to the next: degrees, and points of sureness.
ROOM = {"degrees": 2, "% sure": 3, "in front": 3}


def same(printed: str, shown: str) -> bool:
    """Word by word; degrees and sureness may differ."""
    room = next((room for word, room in ROOM.items() if word in shown), 0)
    words = [re.sub(r"[0-9]+", "#", text) for text in (printed, shown)]
    numbers = [[int(n) for n in re.findall(r"[0-9]+", text)] for text in (printed, shown)]
    if words[0] != words[1]:
        return False
    apart = [abs((a - b + 180) % 360 - 180) for a, b in zip(*numbers, strict=True)]
    return max(apart, default=0) <= room if room else printed == shown


def test_it_runs_and_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    assert len(SNIPPETS) == len(re.findall(r"```python", PAGE)) > 6
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    for code, shown in SNIPPETS:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(code, names)
        assert same(said.getvalue(), shown), f"{code}printed {said.getvalue()}"
    assert isinstance(names["pose"], Pose)
    assert (tmp_path / "both.onnx").is_file()


def test_a_wrong_word_or_angle_would_be_seen() -> None:
    assert same("turned by [90, 92] degrees\n", "turned by [91, 91] degrees\n")
    assert same("turned by [359, 92] degrees\n", "turned by [1, 91] degrees\n")
    assert not same("turned by [90, 120] degrees\n", "turned by [91, 91] degrees\n")
    assert not same("noise: False\n", "noise: True\n")


@pytest.mark.parametrize("page", ["in-front-of-your-model.md", "detector.md"])
def test_the_pages_that_it_names_are_there(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / "docs" / target).is_file(), target
