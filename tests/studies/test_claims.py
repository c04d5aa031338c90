"""Tables of the studies: a result that exists is not measured again, and a kill leaves no claim."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import ROOT, easy_images

from radialbeams.files import claimed


def study(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"study_{name}", ROOT / "studies" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def leaks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Runs `studies/leaks.py` on four combinations; what is measured is listed."""
    module, measured = study("leaks"), list[str]()
    grid = [("leakfree", "cnn", noise, 128) for noise in ("white", "pink", "blurred", "jpeg75")]
    monkeypatch.setattr(module, "GRID", grid)
    monkeypatch.setattr("sys.argv", ["leaks.py", "--out", str(tmp_path)])
    monkeypatch.setattr(module, "_measure", lambda path, *_: measured.append(path.name))
    (tmp_path / "leakfree-cnn-white.json").write_text("{}")
    (tmp_path / "leakfree-cnn-pink.claimed").touch()  # a killed process left it
    with claimed(tmp_path / "leakfree-cnn-blurred.claimed"):
        module.main()
    return measured


def test_the_grid_skips_what_is_done_or_claimed_and_repeats_what_was_killed(
    leaks: list[str],
) -> None:
    assert leaks == ["leakfree-cnn-pink.json", "leakfree-cnn-jpeg75.json"]


def test_a_table_skips_what_is_done_or_claimed_and_repeats_what_was_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = study("ring")
    names = list(module.TABLES["side-by-side"].rows)
    done, busy, *rest = names
    places = {name: tmp_path / f"side-by-side-{name}.json" for name in names}
    places[done].write_text("{}")
    places[rest[0]].with_suffix(".claimed").touch()

    def run(*_: Any) -> dict[str, float]:
        return {"mean": 1.0, "median": 1.0}

    monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(module, "read_images", lambda *_, **__: easy_images(2))
    monkeypatch.setattr("sys.argv", ["ring.py", "side-by-side", "--out", str(tmp_path)])
    with claimed(places[busy].with_suffix(".claimed")):
        module.main()
    assert places[done].read_text() == "{}" and not places[busy].exists()
    assert [json.loads(places[name].read_text())["name"] for name in rest] == rest
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == rest
