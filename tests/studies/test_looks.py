"""The ONNX file of a model and its torch network give the same looks."""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path

import numpy as np
import torch
from conftest import ROOT

from radialbeams import zoo
from radialbeams.training.data import ImageSet
from radialbeams.training.weights import load_model, save_model

sys.path.insert(0, str(ROOT / "studies"))
looks = importlib.import_module("looks")


def test_looks_through_onnx_are_those_of_torch(tmp_path: Path) -> None:
    stem = zoo.FOLDER / "ring.coil100"
    model, card = load_model(stem)
    save_model(tmp_path / "model", model, card)
    side = card.parent_size
    pixels = torch.randint(0, 256, (2, 3, side, side), dtype=torch.uint8)
    images = ImageSet("random", pixels, ("a", "b"), ("a", "b"))
    by_torch = looks.outputs(tmp_path / "model", images, seeds=1)
    shutil.copy(stem.with_name("ring.coil100.onnx"), tmp_path / "model.onnx")
    session = looks.network(tmp_path / "model", torch.device("cpu"))
    assert not isinstance(session, torch.nn.Module)
    by_onnx = looks.outputs(tmp_path / "model", images, seeds=1)
    for first, second in zip(by_torch, by_onnx, strict=True):
        np.testing.assert_allclose(first, second, atol=1e-3)
