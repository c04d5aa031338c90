"""Publishing: what is held out falls into two halves, whatever held it out."""

from __future__ import annotations

import hashlib
import importlib

import pytest
from conftest import ROOT

from radialbeams.nn.bic import BICConfig
from radialbeams.nn.convolutional import Convolutional, ConvolutionalConfig
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import LeakfreeViews

TOOLS = ROOT / "tools"


@pytest.mark.parametrize("one_in", [5, 50])
def test_half_of_what_is_held_out_is_in_the_first_half(
    one_in: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    publish = importlib.import_module("publish")

    def held_out(key: str) -> bool:
        return int(hashlib.sha256(key.encode()).hexdigest(), 16) % one_in == 0

    keys = [key for key in map(str, range(40_000)) if held_out(key)]
    first = [key for key in keys if publish._first_half(key)]
    assert 0.4 < len(first) / len(keys) < 0.6


def test_a_recipe_is_found_in_a_card_whatever_became_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    publish = importlib.import_module("publish")
    recipe = Recipe("coil100", BICConfig(), 128)
    became = {"minutes": 5, "start": {}, "averaged": {}, "steps_done": 1, "seconds": 1.0}
    training = {**recipe.to_dict(), **became, "hardware": "cuda"}
    assert Recipe.from_dict(publish._recipe(training)) == recipe


def test_a_model_is_calibrated_on_views_with_the_blur_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    publish = importlib.import_module("publish")
    model = Convolutional(ConvolutionalConfig(variant="lite0", view_size=64))
    training = {"protocol": "leakfree", "padding": "zeros", "sigma": 1.1}
    assert publish._views(model, {"training": training}) == LeakfreeViews(64, 1.1)
