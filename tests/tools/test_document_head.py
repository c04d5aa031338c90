"""The refit of "is a document": what is left out, and what changes in the published network."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from PIL import Image

from radialbeams import documents
from radialbeams.files import sha256
from tools.documents import document_head
from tools.documents.material import is_test_drawing


def test_a_score_is_added_and_nothing_else_changes(tmp_path: Path) -> None:
    for name in ("quarter.onnx", "quarter.json"):
        shutil.copy(documents.FOLDER / name, tmp_path)
    weights = np.linspace(-1, 1, 128)
    for bias in (0.25, 0.5):  # a second fit replaces the first
        model = onnx.load(tmp_path / "quarter.onnx")
        document_head.write(tmp_path, model, weights, bias)
        document_head.note(tmp_path, -1.5, {"pages": [4, 0.75]})
    card = json.loads((tmp_path / "quarter.json").read_text(encoding="utf-8"))
    assert card["sha256"]["onnx"] == sha256((tmp_path / "quarter.onnx").read_bytes())
    reader, published = documents.DocumentReader(1, tmp_path), documents.DocumentReader(1)
    assert reader.card == replace(published.card, drawn=-1.5)
    views = np.random.default_rng(0).integers(0, 256, (2, 384, 384), np.uint8)
    upright, document, pages = reader.scores(views)
    old_upright, old_document, old_pages = published.scores(views)
    np.testing.assert_array_equal(upright, old_upright)
    np.testing.assert_array_equal(document, old_document)
    assert np.abs(pages - old_pages).min() > 0.01
    assert len(onnx.load(tmp_path / "quarter.onnx").graph.output) == 3


def test_each_row_is_scored_by_a_fit_that_did_not_see_it() -> None:
    """A row that no other resembles is told apart only by a fit that has seen it."""
    rng = np.random.default_rng(0)
    pages = np.c_[rng.normal(2, 1, 40), np.zeros(40)]
    others = np.c_[rng.normal(-2, 1, 40), np.zeros(40)]
    pages[0] = (-2, 30)
    weights, bias = document_head.logistic(others, pages)
    scores = document_head.crosswise({"pages": pages, "photos": others})
    assert pages[0] @ weights + bias > 0 > scores["pages"][0]
    assert (scores["pages"][1:] > 0).mean() > 0.9 and (scores["photos"] < 0).mean() > 0.9


def test_signs_are_in_no_test_and_in_no_training(tmp_path: Path, monkeypatch: object) -> None:
    root = tmp_path / "usr/share/openclipart/png"
    names = [f"{'abcdefghij'[k % 10]}{'klmno'[k // 10]}.png" for k in range(50)]
    for place, colour in (("signs_and_symbols", 10), ("animals", 20), ("special/patterns", 30)):
        (root / place).mkdir(parents=True)
        for name in names:
            Image.new("RGB", (40, 30), (colour,) * 3).save(root / place / name)
    Image.new("RGB", (400, 20)).save(root / "signs_and_symbols" / "line.png")
    kept = [name for name in names if not is_test_drawing(name)]
    assert 0 < len(kept) < len(names)
    monkeypatch.setattr(document_head, "SIGNS", len(kept))  # type: ignore[attr-defined]
    monkeypatch.setattr(document_head, "turned", lambda image, _: image)  # type: ignore[attr-defined]
    found = list(document_head.signs(tmp_path))
    assert len(found) == len(kept)  # the narrow one is left out too
    assert {image.getpixel((5, 5)) for image in found} == {(10, 10, 10)}
