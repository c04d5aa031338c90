"""Runs that version 0.1 of the package made: finished ones load, unfinished ones are resumed.

The fixtures were written by that version, on the images of `easy_images`. One class then held
the settings of both decoders, and a card had no version.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from conftest import easy_images

from radialbeams.nn.architectures import parse_config
from radialbeams.nn.bic import BICConfig
from radialbeams.nn.ring_network import RingConfig
from radialbeams.training.fit import Fit
from radialbeams.training.recipe import Recipe
from radialbeams.training.weights import load_model, save_model

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(("name", "config"), [("ring", RingConfig), ("lstm", BICConfig)])
def test_a_finished_run_is_loaded_and_saved_in_the_present_format(
    name: str, config: type, tmp_path: Path
) -> None:
    stem = RUNS / name / "whole" / "model"
    model, card = load_model(stem)
    assert type(model.config) is config
    assert card.training is not None and card.training.steps_done == 8
    assert Recipe.of_card(card).model == model.config
    save_model(tmp_path / "model", model, card)
    written = json.loads((tmp_path / "model.json").read_text())
    assert written["version"] == 2
    others = {"latent", "lstm_layers", "hub"} if name == "ring" else {"ring_stem", "stem"}
    assert not others & set(written["config"])
    again, _ = load_model(tmp_path / "model")
    views = torch.rand(2, 3, model.config.view_size, model.config.view_size)
    assert torch.equal(again.angles(views), model.angles(views))


@pytest.mark.parametrize("name", ["ring", "lstm"])
def test_a_killed_run_is_resumed_to_the_end_that_the_older_version_reached(
    name: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(RUNS / name / "half", tmp_path / name)
    recipe = Recipe.from_dict(json.loads((folder / "recipe.json").read_text()))
    fit = Fit(recipe, easy_images(16), folder, device=torch.device("cpu"), log_every=1)
    assert 0 < fit.at.step < 8
    fit.run()
    reached, _ = load_model(RUNS / name / "whole" / "model")
    resumed, _ = load_model(folder / "model")
    for key, value in resumed.state_dict().items():
        if key == "ring.head.bias":
            continue  # a constant on all logits changes nothing, so rounding alone moves it
        torch.testing.assert_close(value, reached.state_dict()[key], rtol=1e-4, atol=1e-5)


def test_settings_of_the_other_decoder_are_passed_over_and_unknown_ones_are_not() -> None:
    assert parse_config({"decoder": "ring", "latent": 64, "ring_width": 32}) == RingConfig(width=32)
    assert parse_config({"latent": 64, "ring_width": 32}) == BICConfig(latent=64, hub="mean")
    with pytest.raises(ValueError, match="Unknown in a model configuration: beams"):
        parse_config({"decoder": "ring", "beams": 3})
    with pytest.raises(ValueError, match="Unknown in a model configuration: latent"):
        parse_config({"architecture": "ring", "latent": 64})
