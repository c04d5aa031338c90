"""Weights on disk: whole or absent, the ones that the card describes or an error."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from radialbeams.cards import Hashes, ViewProtocol, to_json
from radialbeams.nn.bic import BIC, BICConfig
from radialbeams.training.weights import (
    DamagedWeights,
    load_model,
    new_card,
    pick_device,
    read_card,
    save_model,
    sha256,
    write_card,
    write_tensors,
)

PAPER = ViewProtocol("paper")


@pytest.fixture
def stem(tiny_model: BIC, tmp_path: Path) -> Path:
    save_model(tmp_path / "bic.mine", tiny_model, new_card(tiny_model, PAPER, "bic.mine"))
    return tmp_path / "bic.mine"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_files_are_as_readable_as_the_umask_says(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        write_tensors(tmp_path / "a.safetensors", {"x": torch.ones(2)}, {})
        assert os.umask(umask) == umask  # and the umask itself is left alone
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.safetensors").stat().st_mode) == mode


def test_a_model_comes_back_to_the_bit(stem: Path, tiny_model: BIC) -> None:
    model, card = load_model(stem)
    assert model.config == tiny_model.config
    assert not model.training
    views = torch.rand(3, 3, 40, 40)
    assert torch.equal(model(views), tiny_model(views))
    assert card.name == "bic.mine"
    assert card.parameters == sum(p.numel() for p in tiny_model.parameters())


def test_the_card_names_the_weights_by_their_bytes(stem: Path) -> None:
    card = read_card(stem.with_name("bic.mine.json"))
    assert card.sha256 == Hashes(sha256(stem.with_name("bic.mine.safetensors")))
    assert BICConfig.from_dict(card.config).num_beams == 8


def test_a_changed_byte_is_refused(stem: Path) -> None:
    weights = stem.with_name("bic.mine.safetensors")
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(DamagedWeights, match=r"does not have the sha256 on its card.*Copy"):
        load_model(stem)


def test_missing_files_are_named(stem: Path) -> None:
    stem.with_name("bic.mine.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"Expected weights at .*bic\.mine\.safetensors"):
        load_model(stem)
    stem.with_name("bic.mine.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"Expected a model card at .*bic\.mine\.json"):
        load_model(stem)


def test_weights_of_another_configuration_are_refused_with_a_sentence(stem: Path) -> None:
    path = stem.with_name("bic.mine.json")
    card = read_card(path)
    write_card(path, replace(card, config={**card.config, "latent": 32}))
    with pytest.raises(ValueError, match="config"):
        load_model(stem)


def test_a_card_that_describes_two_networks_is_refused(stem: Path) -> None:
    path = stem.with_name("bic.mine.json")
    card = read_card(path)
    write_card(path, replace(card, network=replace(card.network, num_bins=9)))
    with pytest.raises(DamagedWeights, match="contradicts itself"):
        load_model(stem)


def test_weights_are_no_pickle(stem: Path) -> None:
    weights = stem.with_name("bic.mine.safetensors")
    head = weights.read_bytes()[:9]
    assert int.from_bytes(head[:8], "little") < weights.stat().st_size
    assert head[8:] == b"{"  # JSON, as safetensors has it
    with safe_open(weights, framework="numpy") as file:
        assert file.metadata() == {"format": "radialbeams"}


def test_cards_are_readable_text(tiny_model: BIC, tmp_path: Path) -> None:
    card = new_card(tiny_model, PAPER, "ö")
    write_card(tmp_path / "card.json", card)
    text = (tmp_path / "card.json").read_text(encoding="utf-8")
    assert "ö" in text and text.endswith("}\n")
    assert json.loads(text) == to_json(card)


def test_views_and_shared_memory_can_be_written(tmp_path: Path) -> None:
    base = torch.arange(6.0).reshape(2, 3)
    write_tensors(tmp_path / "x.safetensors", {"a": base, "b": base, "t": base.T}, {})
    with safe_open(tmp_path / "x.safetensors", framework="pt") as file:
        assert torch.equal(file.get_tensor("t"), base.T)
        assert torch.equal(file.get_tensor("b"), base)


def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pick_device("auto") == pick_device("cpu") == torch.device("cpu")
    with pytest.raises(ValueError, match=r"Expected a GPU for cuda, but torch finds none\."):
        pick_device("cuda")


def test_rounding_changes_the_model_along_with_its_file(tmp_path: Path, tiny_model: BIC) -> None:
    save_model(tmp_path / "small", tiny_model, new_card(tiny_model, PAPER), half=True)
    again = load_model(tmp_path / "small")[0].state_dict()
    for name, weight in tiny_model.state_dict().items():
        torch.testing.assert_close(again[name], weight, rtol=0, atol=0)
        if weight.is_floating_point() and weight.ndim > 1:
            torch.testing.assert_close(weight.half().float(), weight, rtol=0, atol=0)
