"""The worked example runs, and its page shows what it prints."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "detector.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def example() -> ModuleType:
    cv2 = pytest.importorskip("cv2")
    if not list(Path(cv2.data.haarcascades).glob("*.xml")):
        pytest.skip("this OpenCV comes without cascades; install the examples extra")
    sys.path.insert(0, str(ROOT / "examples"))
    import detector

    return detector


@pytest.fixture(scope="module")
def result(example: ModuleType) -> Any:
    return example.run()


def test_every_face_is_found_turned_upright_and_read(example: ModuleType, result: Any) -> None:
    assert len(result.boxes) == len(example.TURNED) == 3
    for number, truth in enumerate(example.TURNED):
        found = math.degrees(result.pose.angle[number].item())
        assert abs((found - truth + 180) % 360 - 180) < 8
        assert result.readings[number].label == "smiling"
        assert len(result.readings[number].eyes) == 2
    assert sum(reading.label == "smiling" for reading in result.before) < 3


def test_the_eyes_come_back_to_where_they_are(example: ModuleType, result: Any) -> None:
    """The same portrait three times: its eyes, turned by the truth, are those that were found."""
    size = 256
    offsets = []
    for number, truth in enumerate(example.TURNED):
        eyes = result.pose[number].invert_points(result.readings[number].eyes[None])[0]
        middle = torch.tensor([10 + number * (size + 10) + (size - 1) / 2, 20 + (size - 1) / 2])
        x, y = (eyes.mean(0) - middle).tolist()
        turn = math.radians(truth)  # undone: counter-clockwise as displayed, rows downwards
        offsets.append(
            (x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn))
        )
    spread = torch.tensor(offsets).std(0)
    assert spread.max() < 2


def test_the_page_shows_what_it_prints(
    example: ModuleType,
    result: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    shown = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[0]
    monkeypatch.setattr(sys, "argv", ["detector.py", "--out", str(tmp_path / "detector.png")])
    monkeypatch.setattr(example, "run", lambda: result)  # once is enough
    example.main()
    printed = capsys.readouterr().out

    def words(text: str) -> list[str]:  # other machines may be a pixel or a degree off
        return re.findall(r"smiling|not smiling|no face", text)

    assert words(printed) == words(shown)
    numbers = [[int(n) for n in re.findall(r"[0-9]+", text)] for text in (printed, shown)]
    assert max(abs(a - b) for a, b in zip(*numbers, strict=True)) <= 3
    assert (tmp_path / "detector.png").is_file()
