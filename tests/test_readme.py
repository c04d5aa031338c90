"""The README runs: its snippet prints what it says, and its figures stand on the cards."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import snippets

from radialbeams import zoo
from radialbeams.cards import to_json
from radialbeams.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_snippet_prints_what_stands_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    snippets.run(README)
    assert (tmp_path / "upright.png").is_file()


def test_the_line_of_angle_is_what_it_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    (line,) = re.findall(r"```json\n(.*?)\n```", README)
    shown = json.loads(line)
    assert main(["angle", shown["path"], "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert list(printed) == list(shown)
    # The last digits depend on the processor and on the version of ONNX Runtime.
    apart = (printed.pop("angle_ccw") - shown.pop("angle_ccw") + 180) % 360 - 180
    assert abs(apart) < 0.5
    assert abs(printed.pop("angle_signed") - shown.pop("angle_signed")) < 0.5
    for chance in ("confidence", "quarter_confidence"):
        assert printed.pop(chance) == pytest.approx(shown.pop(chance), abs=0.02)
    assert printed == shown


def rows() -> list[list[str]]:
    row = re.compile(r"\| `(bic|general|light|ring)[.`]")
    lines = [line for line in README.splitlines() if row.match(line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_shipped_model_has_its_row() -> None:
    assert sorted(row[0].strip("`") for row in rows()) == zoo.names()


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_the_figures_are_those_of_the_card(row: list[str]) -> None:
    card = to_json(zoo.find(row[0].strip("`")).card)
    protocol = card["protocol"]["name"]
    figures, jpeg = card["metrics"][protocol], card["metrics"][f"{protocol}_jpeg_90"]
    assert row[2:] == [
        protocol,
        f"{figures['mean']:.2f}°",
        f"{figures['median']:.2f}°",
        f"{figures['within_10']:.1%}",
        f"{figures['flips']:.2%}",
        f"{figures['paper_equivalent']:.2f}°",
        f"{jpeg['mean']:.2f}°",
        f"{card['end_to_end']['mean']:.2f}°",
    ]


def test_its_commands_are_the_makefiles() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
