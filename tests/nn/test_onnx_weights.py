"""Weights are read from ONNX files to the bit, and hostile files are refused in words."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from radialbeams.cards import Hashes
from radialbeams.files import sha256
from radialbeams.nn.onnx_weights import read_weights
from radialbeams.nn.pretrained import DamagedWeights, load_model
from radialbeams.training.weights import read_card, write_card


@pytest.fixture
def once(finished_run: Path, tmp_path: Path) -> Path:
    """STEM of a model whose weights are in its ONNX file only."""
    shutil.copy(finished_run / "model.onnx", tmp_path / "mine.onnx")
    _named(tmp_path / "mine", finished_run)
    return tmp_path / "mine"


def _named(stem: Path, run: Path) -> None:
    """Writes the card that names the ONNX file as it is."""
    card = replace(read_card(run / "model.json"), name="mine")
    hashes = Hashes(onnx=sha256(stem.with_suffix(".onnx")))
    write_card(stem.with_suffix(".json"), replace(card, sha256=hashes))


def test_an_onnx_file_holds_the_weights_of_the_run(finished_run: Path) -> None:
    found = read_weights(finished_run / "model.onnx")
    kept = load_file(finished_run / "model.safetensors")
    floats = {name: value for name, value in kept.items() if value.is_floating_point()}
    assert floats and all(torch.equal(found[name], value) for name, value in floats.items())


def test_a_model_is_loaded_from_its_onnx_file_alone(once: Path, finished_run: Path) -> None:
    model, card = load_model(once)
    expected, _ = load_model(finished_run / "model")
    assert card.sha256.safetensors is None
    for name, value in expected.state_dict().items():
        if value.is_floating_point():
            assert torch.equal(model.state_dict()[name], value)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda data: data[: len(data) // 2], "it is truncated"),
        (lambda data: b"\xff" * 64, "it is not an ONNX file"),
        (lambda data: b"", "does not hold the tensors"),
    ],
)
def test_a_damaged_onnx_file_is_refused_in_words(
    once: Path, finished_run: Path, damage: object, problem: str
) -> None:
    path = once.with_suffix(".onnx")
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(DamagedWeights, match="does not have the sha256"):
        load_model(once)
    _named(once, finished_run)
    with pytest.raises(DamagedWeights, match=problem):
        load_model(once)


@settings(deadline=None)
@given(data=st.binary(max_size=200), start=st.booleans())
def test_wild_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, start: bool
) -> None:
    path = tmp_path_factory.mktemp("wild") / "a.onnx"
    # A graph with one initializer, whose content is wild.
    inner = bytes([0x2A, len(data) % 128]) + data
    path.write_bytes(bytes([0x3A, len(inner) % 128]) + inner if start else data)
    try:
        found = read_weights(path)
    except ValueError:
        return
    assert all(value.dtype == torch.float32 for value in found.values())
