"""The snippets of docs/scale.md that need the `ray` extra."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="the ray extra is not installed; run `make test-ray`")
pytest.importorskip("pandas", reason="pandas is not installed; run `make test-ray`")

import pyarrow as pa
import pyarrow.parquet as pq
import snippets
from conftest import ROOT

from radialbeams.engines import ray as engine

PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.slow


def test_the_snippets_for_ray_and_pandas_run(
    faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [path.name for path in sorted(faces.rglob("*.jpg"))]
    pictures = [path.read_bytes() for path in sorted(faces.rglob("*.jpg"))]
    pq.write_table(pa.table({"name": names, "image": pictures}), "photos.parquet")
    own = [s for s in snippets.snippets(PAGE) if s.reason and "test_page.py" in s.reason]
    assert len(own) == 2
    with engine.connected(engine.Cluster(workers=2)):
        for snippet in own:
            exec(snippet.code, {})
    made = pq.read_table("upright")
    assert sorted(made["name"].to_pylist()) == sorted(names)
    failed = [row["name"] for row in made.to_pylist() if row["error"] is not None]
    assert failed == ["broken.jpg"]
    assert made["angle_ccw"].null_count == 1
    shown = ast.literal_eval(capsys.readouterr().out)
    assert sum(shown.values()) == len(names) - 1
