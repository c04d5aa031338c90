"""The tutorial runs from top to bottom and prints what stands below each snippet."""

from __future__ import annotations

from pathlib import Path

import pytest
import snippets
import torch

from radialbeams.front.pose import Pose

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "in-front-of-your-model.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_it_runs_and_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    names = snippets.run(PAGE)
    assert isinstance(names["pose"], Pose)
    assert (tmp_path / "both.onnx").is_file()


def test_every_snippet_shows_its_output() -> None:
    shown = [snippet.shown for snippet in snippets.snippets(PAGE)]
    assert len(shown) > 6
    assert None not in shown
