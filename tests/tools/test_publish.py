"""Publishing: what is held out falls into two halves, whatever held it out."""

from __future__ import annotations

import hashlib
import importlib
import shutil
from pathlib import Path

import pytest
import torch
from conftest import ROOT

from radialbeams import zoo
from radialbeams.cards import ViewProtocol, parse, to_json
from radialbeams.nn.bic import BICConfig
from radialbeams.nn.convolutional import Convolutional, ConvolutionalConfig
from radialbeams.training.judging import first_half
from radialbeams.training.recipe import Recipe
from radialbeams.training.runs import card_views
from radialbeams.training.views import LeakfreeViews
from radialbeams.training.weights import load_model, new_card, read_card, save_model

TOOLS = ROOT / "tools"


@pytest.mark.parametrize("one_in", [5, 50])
def test_half_of_what_is_held_out_is_in_the_first_half(
    one_in: int,
) -> None:
    def held_out(key: str) -> bool:
        return int(hashlib.sha256(key.encode()).hexdigest(), 16) % one_in == 0

    keys = [key for key in map(str, range(40_000)) if held_out(key)]
    first = [key for key in keys if first_half(key)]
    assert 0.4 < len(first) / len(keys) < 0.6


def test_a_recipe_is_found_in_a_card_whatever_became_of_the_run() -> None:
    recipe = Recipe("coil100", BICConfig(), 128)
    start = {"name": "first", "sha256": "0"}
    became = {"minutes": 5, "start": start, "averaged": [], "steps_done": 1, "seconds": 1.0}
    training = {**recipe.to_dict(), **became, "hardware": "cuda"}
    card = to_json(zoo.find("bic.coil100").card)
    assert Recipe.of_card(parse({**card, "training": training})) == recipe


def test_a_model_is_calibrated_on_views_with_the_blur_of_its_own() -> None:
    model = Convolutional(ConvolutionalConfig(variant="lite0", view_size=64))
    card = new_card(model, ViewProtocol("leakfree", 128, sigma=1.1))
    assert card_views(card) == LeakfreeViews(64, 1.1)


def test_weights_that_the_onnx_file_contains_are_stored_once(
    finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    publish = importlib.import_module("publish")
    for ending in ("json", "safetensors", "onnx"):
        shutil.copy(finished_run / f"model.{ending}", tmp_path / f"mine.{ending}")
    card = publish.stored_once(tmp_path / "mine")
    assert card.sha256.safetensors is None and card == read_card(tmp_path / "mine.json")
    assert not (tmp_path / "mine.safetensors").exists()
    expected, _ = load_model(finished_run / "model")
    model, _ = load_model(tmp_path / "mine")
    assert all(map(torch.equal, model.parameters(), expected.parameters()))


def test_other_weights_than_those_of_the_onnx_file_are_kept(
    finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    publish = importlib.import_module("publish")
    shutil.copy(finished_run / "model.onnx", tmp_path / "mine.onnx")
    model, card = load_model(finished_run / "model")
    next(model.parameters()).data += 1
    save_model(tmp_path / "mine", model, card)
    assert publish.stored_once(tmp_path / "mine").sha256.safetensors is not None
    assert (tmp_path / "mine.safetensors").exists()


@pytest.mark.parametrize("name", ["general", "light"])
def test_publishing_again_keeps_the_rule_of_further_looks(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    publish = importlib.import_module("publish")
    card = zoo.find(name).card
    assert card.looks is not None and card.looks.mean is not None
    again = (card.looks.mean - 1) / 3
    assert publish._looks(name, card.looks.below, again, card.calibration) == card.looks
