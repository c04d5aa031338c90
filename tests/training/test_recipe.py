"""A recipe: written and read again, refused when it says something unknown."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, beams_of, paper_config

from radialbeams.nn.beams import margin
from radialbeams.nn.bic import BICConfig
from radialbeams.training.augment import Augmentation
from radialbeams.training.data import SOURCES
from radialbeams.training.recipe import Recipe

SHIPPED = sorted((ROOT / "recipes").glob("*.json"))


def test_the_defaults_are_the_papers_but_for_the_turns() -> None:
    recipe = Recipe("coil100", BICConfig())
    assert (recipe.batch, recipe.learning_rate) == (128, 1e-4)
    model = paper_config(recipe.model)
    assert (model.num_beams, model.epsilon, model.thickness) == (32, 1, 3)
    assert (recipe.protocol, recipe.padding, recipe.group, recipe.prior) == (
        "paper",
        "zeros",
        "so2",
        "off",
    )
    # What the paper does not use is off.
    off = (recipe.schedule, recipe.weight_decay, recipe.average, recipe.clip)
    assert off == ("constant", 0, 0, 0)
    assert not recipe.augmentation.active


def test_a_recipe_survives_json() -> None:
    recipe = Recipe(
        "lfw",
        BICConfig.for_images(250, hub="sum"),
        250,
        prior="dynamic",
        augmentation=Augmentation(mirror=True, zoom=0.1),
        seed=7,
    )
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


def test_a_recipe_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Recipe("coil100", BICConfig()).batch = 1  # type: ignore[misc]


def test_unknown_keys_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"Unknown in a recipe: epochs, lr\. Known: data, model,"):
        Recipe.from_dict({"data": "coil100", "model": {}, "lr": 1, "epochs": 2})


def test_unknown_keys_of_the_model_are_refused_too() -> None:
    with pytest.raises(ValueError, match=r"a model configuration: beams\. Known: arch"):
        Recipe.from_dict({"data": "coil100", "model": {"beams": 32}})


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("protocol", "papers", "protocol must be one of .*paper; got 'papers'"),
        ("padding", "reflect", "padding must be one of zeros, corner; got 'reflect'"),
        ("group", "o2", "group must be one of so2, cyclic; got 'o2'"),
        ("draw", "epoch", "draw must be one of view, image; got 'epoch'"),
        ("prior", "on", "prior must be one of off, full, dynamic; got 'on'"),
        ("schedule", "cosine", "schedule must be one of constant, one-cycle; got 'cosine'"),
        ("batch", 0, "batch must be at least 1; got 0"),
        ("steps", -1, "steps must be at least 1; got -1"),
        ("average", 1.0, r"average must lie in \[0, 1\); got 1.0"),
        ("average", -0.1, r"average must lie in \[0, 1\); got -0.1"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_right(field: str, value: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Recipe("coil100", BICConfig(), **{field: value})


def test_unknown_keys_of_the_augmentation_are_refused_too() -> None:
    with pytest.raises(ValueError, match=r"Unknown in an augmentation: flip\. Known: mirror,"):
        Recipe.from_dict({"data": "coil100", "model": {}, "augmentation": {"flip": True}})


def test_a_recipe_without_a_model_is_refused_with_a_sentence() -> None:
    with pytest.raises(ValueError, match="model"):
        Recipe.from_dict({"data": "coil100"})


def test_a_negative_seed_is_refused_with_a_sentence() -> None:
    with pytest.raises(ValueError, match="seed must be at least 0; got -1"):
        Recipe("coil100", BICConfig(), seed=-1)


def test_recipes_are_shipped_for_the_papers_two_models() -> None:
    assert {"bic.coil100", "bic.lfw"} <= {path.stem for path in SHIPPED}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_recipe_fits_its_data(path: Path) -> None:
    recipe = Recipe.from_dict(json.loads(path.read_text(encoding="utf-8")))
    assert recipe.data in SOURCES
    if recipe.protocol == "paper":
        assert recipe.parent_size == SOURCES[recipe.data].size
        assert recipe.model.view_size == recipe.parent_size + 2 * margin(recipe.parent_size)
        assert beams_of(recipe.model).beam_length == recipe.parent_size // 2
