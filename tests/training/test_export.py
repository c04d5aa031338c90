"""Export: the ONNX file computes what torch computes, or there is no file."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from radialbeams.cards import ViewProtocol
from radialbeams.nn.architectures import build
from radialbeams.nn.bic import BIC
from radialbeams.nn.ring_network import RingConfig
from radialbeams.training import export
from radialbeams.training.export import ExportError, ParityError, export_onnx, parity
from radialbeams.training.runs import export_run
from radialbeams.training.weights import load_model, new_card, read_card, save_model, sha256


@pytest.fixture
def exported(finished_run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that was exported once; every later export gets its graph from there."""
    path = finished_run / "model.onnx"
    monkeypatch.setattr(export, "_write_graph", lambda model, to: shutil.copy(path, to))
    return path


@pytest.mark.parametrize("batch", [1, 7, 128])
def test_torch_and_onnx_agree_at_every_batch(finished_run: Path, batch: int) -> None:
    model, _ = load_model(finished_run / "model")
    session = onnxruntime.InferenceSession(str(finished_run / "model.onnx"))
    views = torch.rand(batch, 3, 40, 40, generator=torch.Generator().manual_seed(batch))
    (found,) = session.run(None, {"views": views.numpy()})
    with torch.inference_mode():
        expected = model(views).numpy()
    assert found.shape == (batch, 2)
    assert np.abs(found - expected).max() <= 1e-4


def test_the_file_says_what_goes_in_and_comes_out(finished_run: Path) -> None:
    session = onnxruntime.InferenceSession(str(finished_run / "model.onnx"))
    (given,), (made,) = session.get_inputs(), session.get_outputs()
    assert (given.name, made.name) == ("views", "unit")
    assert given.shape[1:] == [3, 40, 40] and made.shape[1:] == [2]
    assert isinstance(given.shape[0], str)  # any batch


def test_the_weights_are_inside_the_file(finished_run: Path, tmp_path: Path) -> None:
    shutil.copy(finished_run / "model.onnx", tmp_path / "alone.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "alone.onnx"))
    assert session.run(None, {"views": np.zeros((1, 3, 40, 40), np.float32)})[0].shape == (1, 2)


def test_the_difference_is_returned(exported: Path, finished_run: Path, tmp_path: Path) -> None:
    model, _ = load_model(finished_run / "model")
    difference = export_onnx(model, tmp_path / "again.onnx")
    assert 0 <= difference <= 1e-4
    assert difference == parity(model, tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == exported.read_bytes()


def test_other_weights_than_the_graphs_are_refused(
    exported: Path, tiny_model: BIC, tmp_path: Path
) -> None:
    text = r"agree within 0\.0001; they differ by .*, so mine\.onnx was not written"
    with pytest.raises(ParityError, match=text):
        export_onnx(tiny_model, tmp_path / "mine.onnx")
    assert list(tmp_path.iterdir()) == []


def test_weights_that_are_not_numbers_are_refused(
    exported: Path, tiny_model: BIC, tmp_path: Path
) -> None:
    with torch.no_grad():
        for parameter in tiny_model.parameters():
            parameter.fill_(torch.nan)
    with pytest.raises(ParityError, match="they differ by nan"):
        export_onnx(tiny_model, tmp_path / "mine.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("difference", [1.1e-4, float("nan"), float("inf")])
def test_without_parity_there_is_no_file_and_the_old_one_stays(
    exported: Path,
    tiny_model: BIC,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    difference: float,
) -> None:
    (tmp_path / "mine.onnx").write_bytes(b"old")
    monkeypatch.setattr(export, "parity", lambda model, path: difference)
    with pytest.raises(ParityError):
        export_onnx(tiny_model, tmp_path / "mine.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.onnx"]
    assert (tmp_path / "mine.onnx").read_bytes() == b"old"


def test_an_exporter_that_fails_says_what_to_do_and_leaves_no_file(
    finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise torch.onnx.OnnxExporterError("Failed to decompose the graph.\nA long explanation.")

    monkeypatch.setattr(torch.onnx, "export", fail)
    model, _ = load_model(finished_run / "model")
    with pytest.raises(ExportError) as caught:
        export_onnx(model, tmp_path / "model.onnx")
    assert str(caught.value) == (
        f"Expected torch {torch.__version__} to export the network to ONNX; it stopped with: "
        "Failed to decompose the graph. Install other versions of torch and onnxscript, and repeat "
        "the command: the trained weights are kept."
    )
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_exported_with_its_card(
    exported: Path, finished_run: Path, tmp_path: Path
) -> None:
    difference = export_run(finished_run / "model", tmp_path / "bic.mine.onnx")
    card = read_card(tmp_path / "bic.mine.json")
    assert card.sha256.onnx == sha256(tmp_path / "bic.mine.onnx")
    assert card.parity == difference
    assert card.config == read_card(finished_run / "model.json").config


@pytest.mark.long
def test_rounded_weights_take_half_the_room_and_lose_nothing(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = RingConfig(
        view_size=28,
        sampler="polar",
        num_beams=16,
        beam_length=16,
        epsilon=0,
        stages=(16,),
        width=256,  # few layers to trace, and nearly all of the file is weights
        dilations=(1,),
        attention=1,
    )
    model, sizes = build(config), []
    for half in (False, True):
        stem = tmp_path / f"{half}"
        save_model(stem, model, new_card(model, ViewProtocol("paper")), half=half)
        assert export_onnx(load_model(stem)[0], stem.with_suffix(".onnx")) < 1e-5
        sizes.append(stem.with_suffix(".onnx").stat().st_size)
        sizes.append(stem.with_suffix(".safetensors").stat().st_size)
    assert sizes[2] < 0.7 * sizes[0] and sizes[3] < 0.6 * sizes[1]
