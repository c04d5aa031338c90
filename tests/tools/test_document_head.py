"""The refit of "is a document": what is left out, and what changes in the published network."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from PIL import Image

from radialbeams import documents
from radialbeams.files import sha256
from tools.documents import document_head
from tools.documents.material import is_test_drawing


def test_only_the_row_of_documents_changes(tmp_path: Path) -> None:
    for name in ("quarter.onnx", "quarter.json"):
        shutil.copy(documents.FOLDER / name, tmp_path)
    before = onnx.load(tmp_path / "quarter.onnx")
    weights = np.linspace(-1, 1, 128)
    document_head.write(tmp_path, onnx.load(tmp_path / "quarter.onnx"), weights, 0.25)
    document_head.note(tmp_path, -1.5, {"pages": [4, 0.75]})
    after = onnx.load(tmp_path / "quarter.onnx")
    changed = []
    for old, new in zip(before.graph.initializer, after.graph.initializer, strict=True):
        first, second = numpy_helper.to_array(old), numpy_helper.to_array(new)
        if not np.array_equal(first, second):
            changed.append(new.name)
            np.testing.assert_array_equal(first[0], second[0])  # the scores of the turns
    assert changed == [document_head.WEIGHT, document_head.BIAS]
    card = json.loads((tmp_path / "quarter.json").read_text(encoding="utf-8"))
    assert card["sha256"]["onnx"] == sha256((tmp_path / "quarter.onnx").read_bytes())
    reader = documents.DocumentReader(1, tmp_path)
    assert (reader.card.document, reader.card.likeness, reader.card.lines) == (-1.5, 0, 0)
    views = np.random.default_rng(0).integers(0, 256, (2, 384, 384), np.uint8)
    old_upright, old_document = documents.DocumentReader(1).scores(views)
    upright, document = reader.scores(views)
    np.testing.assert_array_equal(upright, old_upright)
    assert np.abs(document - old_document).min() > 0.01


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
