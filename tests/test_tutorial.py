"""The tutorial runs from top to bottom and prints what stands below each snippet."""

from __future__ import annotations

from pathlib import Path

import pytest
import snippets
import torch

from radialbeams.front.pose import Pose
from radialbeams.training import own

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "in-front-of-your-model.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.long
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


def test_the_page_on_training_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a tiny network and a few steps, so that it takes seconds."""
    monkeypatch.chdir(tmp_path)

    def quick(folder: Path, out: str, *, minutes: float) -> own.TrainedRun:
        model = {"stem": 8, "stages": [8], "width": 16, "num_beams": 12, "beam_length": 12}
        config = {"batch": 8, "model": {**model, "dilations": [1, 2]}}
        return original(folder, out, steps=2, start="scratch", config=config, devices="cpu")

    original = own.fit_folder
    monkeypatch.setattr(own, "fit_folder", quick)
    names = snippets.run((ROOT / "docs" / "train.md").read_text(encoding="utf-8"))
    assert names["run"].report.is_file()
    assert names["result"].confidence is not None
