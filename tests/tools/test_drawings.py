"""Which drawings are measured, and how their confidence is summed up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from radialbeams.posterior import Answer
from tools.documents.drawings import drawings, summary
from tools.documents.material import is_test_drawing


def test_drawings_with_a_clear_up_are_divided_by_their_names(tmp_path: Path) -> None:
    root = tmp_path / "usr/share/openclipart/png"
    names = [f"cat{number}.png" for number in range(20)]
    for folder in ("animals", "animals/bugs", "shapes", "food"):
        (root / folder).mkdir(parents=True)
        for name in names:
            Image.new("L", (40, 30)).save(root / folder / name)
    Image.new("L", (300, 20)).save(root / "animals" / "line.png")
    parts = [drawings(tmp_path, test=test) for test in (False, True)]
    assert sorted(path.name for part in parts for path in part) == sorted(names)
    assert all(path.parent.name == "animals" for part in parts for path in part)
    assert [is_test_drawing(path.name) for path in parts[1]] == [True] * len(parts[1])
    assert parts[0] and parts[1]


def test_the_listed_drawings_are_those_of_the_test_part() -> None:
    place = Path(__file__).parents[2] / "tools/documents/test_drawings.txt"
    names = place.read_text(encoding="utf-8").split()
    assert len(names) > 300 and names == sorted(set(names))
    assert all(map(is_test_drawing, names))


def test_a_picture_is_right_within_ten_degrees_and_a_document_at_its_quarter() -> None:
    degrees = [0, 90, 180, 250]  # the last is 20° off
    for kind, right in (("picture", 75.0), ("document", 100.0)):
        answers = [Answer(angle, 0.95, kind=kind) for angle in degrees]  # type: ignore[arg-type]
        found = summary(answers * 2, np.arange(8) >= 4)
        assert found["right"] == found["right of these"] == right
        assert found["at least 0.9"] == 100
        assert found["calibration error"] == round(abs(0.95 - right / 100), 3)
