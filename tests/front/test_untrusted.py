"""The module with a model that its card calls untrusted: it leaves every image alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from radialbeams import zoo
from radialbeams.cards import write as write_card
from radialbeams.front import Canonicalizer


@pytest.mark.parametrize("snap", ["auto", "90", "none"])
def test_an_untrusted_model_turns_nothing_unless_overridden(tmp_path: Path, snap: str) -> None:
    model = zoo.find("ring.coil100")
    (tmp_path / "model.onnx").write_bytes(model.onnx.read_bytes())
    card = replace(model.card, trust=("The data is symmetric.",))
    write_card(tmp_path / "model.json", card)
    images = torch.rand(4, 3, 64, 64)
    careful = Canonicalizer.from_pretrained(tmp_path, snap=snap)  # type: ignore[arg-type]
    assert torch.equal(careful(images)[0], images)
    bold = Canonicalizer.from_pretrained(tmp_path, abstain=0.0, snap="none")
    assert not torch.equal(bold(images)[0], images)
