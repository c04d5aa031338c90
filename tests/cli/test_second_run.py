"""What `upright` turned once it does not turn again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from radialbeams.cli import main
from radialbeams.demo import PICTURES

ANGLES = {"astronaut": (205.0,), "rocket": (62.0, 130.0), "horse": (25.0,)}


@pytest.fixture
def rotated(tmp_path: Path) -> Path:
    """Pictures that were rotated on their own canvas, which cuts off their corners."""
    folder = tmp_path / "rotated"
    folder.mkdir()
    for name, angles in ANGLES.items():
        with Image.open(PICTURES / f"{name}.webp") as picture:
            upright = picture.convert("RGB")
        for angle in angles:
            turned = upright.rotate(angle, Image.Resampling.BICUBIC)
            turned.save(folder / f"{name}-{angle:03.0f}.jpg", quality=90)
    return folder


def upright(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    """Runs the command, and returns the names of the files that it turned."""
    assert main(["upright", str(folder), *options, "-j", "1", "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [Path(record["path"]).name for record in records if record["action"] == "turned"]


def test_a_second_run_in_place_turns_nothing(
    rotated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turned = upright(rotated, capsys, "--in-place")
    assert len(turned) >= 3  # or the second run would prove nothing
    once = {path.name: path.read_bytes() for path in rotated.glob("*.jpg")}
    assert upright(rotated, capsys, "--dry-run", "--in-place") == []
    assert upright(rotated, capsys, "--in-place") == []
    assert {path.name: path.read_bytes() for path in rotated.glob("*.jpg")} == once


def test_the_outputs_of_a_run_are_not_turned_again(
    rotated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert upright(rotated, capsys, "-o", str(first))
    assert upright(first, capsys, "-o", str(second)) == []
