"""Nothing that a file says reaches a terminal or a page as anything but plain text."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radialbeams import cli, demo, zoo
from radialbeams.cards import to_json
from radialbeams.cli import main, terminal
from radialbeams.demo import PICTURES
from radialbeams.escaping import as_json, shown

# A new title, a cleared screen, a line of its own, text from right to left, a C1 command, delete.
HOSTILE = "a\x1b]0;t\x07\x1b[2J\nINJECTED\r\u202egnp\x9b31m\x7f<script>"
BYTES = os.fsdecode(b"b\xff\x1b[31m")  # no UTF-8


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Good and broken images, a file of an odd kind, and a model, all with hostile names."""
    monkeypatch.chdir(tmp_path)
    pictures = tmp_path / "in"
    pictures.mkdir()
    for name in (HOSTILE, BYTES):
        shutil.copy(PICTURES / "horse.webp", pictures / f"{name}.webp")
        (pictures / f"{name}-broken.png").write_bytes(b"\x89PNG\r\n\x1a\n\x1b[31m")
    (pictures / f"x.{HOSTILE}").write_bytes(b"")
    card = to_json(zoo.find("ring").card)
    for name in (HOSTILE, "mine"):
        shutil.copy(zoo.FOLDER / "ring.onnx", tmp_path / f"{name}.onnx")
        (tmp_path / f"{name}.json").write_text(json.dumps({**card, "summary": HOSTILE}))
    (tmp_path / "wrong.json").write_text(
        json.dumps({**card, "abstain": {HOSTILE: 1}, "config": {**card["config"]}})
    )
    return tmp_path


def check(text: str) -> None:
    """Only printable letters and the ends of our own lines."""
    assert [letter for letter in text if not letter.isprintable() and letter != "\n"] == []
    assert "\nINJECTED" not in text


IMAGES = ["in", "--workers", "1"]
COMMANDS = {
    "angle": ["angle", *IMAGES],
    "angle, another model": ["angle", *IMAGES, "--model", f"{HOSTILE}.onnx"],
    "upright": ["upright", *IMAGES, "-o", HOSTILE],
    "upright, another model": ["upright", *IMAGES, "-o", "out", "--model", "mine.onnx"],
    "upright, dry": ["upright", *IMAGES, "--dry-run"],
    "a missing file": ["angle", f"{HOSTILE}.png", "--workers", "1"],
    "a missing model": ["upright", "in", "--model", HOSTILE],
    "a wrong card": ["upright", "in", "--model", "wrong.json"],
    "a wrong colour": ["upright", "in", "--fill", HOSTILE],
    "a wrong report": ["upright", "in", "--report", HOSTILE],
    "a missing folder for the report": ["upright", "in", "--report", f"{HOSTILE}/x.html"],
    "a missing input": ["upright", HOSTILE, "--in-place"],
    "an unknown option": ["angle", f"--{HOSTILE}"],
    "an unknown command": [HOSTILE],
    "a wrong number": ["angle", "in", "--workers", HOSTILE],
    "models": ["models"],
    "models as JSON": ["models", "--json"],
    "demo": ["demo", "-o", f"{HOSTILE}.png".replace("/", "")],
    "train": ["train", HOSTILE, "--out", "run"],
    "train, by a recipe": ["train", "in", "--out", "run", "--recipe", f"{HOSTILE}.json"],
    "evaluate": ["evaluate", "mine.onnx", HOSTILE],
    "evaluate, no model": ["evaluate", HOSTILE, "in"],
    "export": ["export", HOSTILE, "x.onnx"],
    "export over a file": ["export", "ring", f"{HOSTILE}.onnx"],
    "reproduce": ["reproduce", HOSTILE],
    "leaks": ["leaks", "--devices", HOSTILE],
    "serve": ["serve", "--model", HOSTILE],
    "page": ["page", "site", "--runtime", HOSTILE],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_no_command_prints_what_a_file_says_as_it_is(
    folder: Path,
    command: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if command[0] == "models":
        monkeypatch.setattr(zoo, "FOLDER", folder)
        (folder / "wrong.json").unlink()
    first = next(iter(demo.rows())) if command[0] == "demo" else None
    monkeypatch.setattr(demo, "rows", lambda: iter([first] * len(demo.TURNS)))
    monkeypatch.setattr("os.isatty", lambda number: False)
    code = main(command)
    out, err = capfd.readouterr()
    assert code in (0, 1, 2)
    assert out or err
    check(out + err)
    assert "Traceback" not in err


def test_every_command_is_gone_through() -> None:
    names = {command.name or command.callback.__name__ for command in cli.app.registered_commands}
    assert names <= {command[0] for command in COMMANDS.values()}


def test_json_keeps_the_names_as_they_are(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    main(["angle", *IMAGES, "--json"])
    out, err = capfd.readouterr()
    check(out + err)
    found = {json.loads(line)["path"] for line in out.splitlines()}
    assert found >= {f"in/{HOSTILE}.webp", f"in/{HOSTILE}-broken.png", f"in/{BYTES}.webp"}


def test_a_pipe_prints_no_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"\x1b[31m")))
    assert main(["angle", "-", "--model", f"{HOSTILE}.onnx"]) == 1
    check("".join(capfd.readouterr()))


def test_the_page_shows_names_as_plain_text(folder: Path) -> None:
    main(["upright", *IMAGES, "-o", "out", "--report", "page.html"])
    page = (folder / "page.html").read_text(encoding="utf-8")
    check(page)
    assert page.count("<script>") == 1 and "&lt;script&gt;" in page  # the page's own


def test_a_bar_shows_text_without_markup(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.progress_bar(2, f"[red]{HOSTILE}") as bar:
        bar.say(f"[red]{HOSTILE}")
        bar.show(1, f"[red]{HOSTILE}")
    told = capsys.readouterr().err
    check(told)
    assert told.count("[red]a") >= 2


def test_a_card_without_its_figures_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "wrong.json").unlink()
    card = json.loads((folder / "mine.json").read_text())
    for wrong in ({}, {"paper": 3}, {"paper": {"mean": HOSTILE}}, [1]):
        (folder / "mine.json").write_text(json.dumps({**card, "metrics": wrong, "data": wrong}))
        monkeypatch.setattr(zoo, "FOLDER", folder)
        assert main(["models"]) == 1
        told = capsys.readouterr().err
        check(told)
        assert re.match(r"radialbeams: .*mine\.json is not a model card: .*(data|metrics)", told)


def test_a_warning_is_shown_on_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import warnings

    def warn(*, started: int) -> int:
        warnings.warn(HOSTILE, stacklevel=1)
        return 0

    monkeypatch.setattr(cli, "main", warn)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with pytest.raises(SystemExit), warnings.catch_warnings():
        warnings.simplefilter("always")
        cli.run()
    told = capsys.readouterr().err
    check(told)
    assert told.startswith("radialbeams: a")


@settings(deadline=None)
@given(st.text(alphabet=st.characters()))
def test_any_text_is_shown_on_one_line(text: str) -> None:
    found = shown(text)
    assert found.isprintable()
    assert len(found) == len(text)
    assert shown(found) == found


@settings(deadline=None)
@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"])))
def test_printable_text_stays_as_it_is(text: str) -> None:
    assert shown(text) == text


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(VALUES)
def test_json_is_printable_and_comes_back(value: object) -> None:
    line = as_json(value)
    assert line.isascii() and line.isprintable()
    assert json.loads(line) == value


def test_json_has_no_nan() -> None:
    assert as_json({"a": [float("nan"), float("inf"), 1.5]}) == '{"a": [null, null, 1.5]}'
