"""One set of defaults: whoever asks for nothing gets the same everywhere."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.main import get_command

from radialbeams import cards, defaults, zoo
from radialbeams.batch import JobSettings
from radialbeams.canonicalizer import Canonicalizer, canonicalize
from radialbeams.cli import app, main
from radialbeams.decisions import Surroundings, decide
from radialbeams.defaults import ALWAYS, Snap, thresholds_for, thresholds_of
from radialbeams.demo import PICTURES
from radialbeams.front import Canonicalizer as Module
from radialbeams.posterior import Answer, Thresholds
from radialbeams.transforms import Upright, UprightTransformer

ENTRIES: dict[str, Callable[..., Any]] = {
    "canonicalize": canonicalize,
    "predict": Canonicalizer.predict,
    "Upright": Upright,
    "UprightTransformer": UprightTransformer,
    "module": Module.from_pretrained,
    "job": JobSettings,
}
SHARED = {
    "model": zoo.DEFAULT,
    "abstain": defaults.ABSTAIN,
    "snap": defaults.SNAP,
    "corners": defaults.CORNERS,
    "fill": defaults.FILL,
    "refine": defaults.LOOKS,
}
# What a module must do otherwise, and why its docstring says so.
DIFFERENT = {("module", "fill")}  # a number, since pixels there are numbers


def given(entry: Callable[..., Any]) -> dict[str, Any]:
    """The defaults in a signature."""
    parameters = inspect.signature(entry).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


@pytest.mark.parametrize("name", ENTRIES)
def test_every_entry_point_has_the_same_defaults(name: str) -> None:
    found = given(ENTRIES[name])
    shared = {key for key in SHARED if key in found and (name, key) not in DIFFERENT}
    assert {key: found[key] for key in shared} == {key: SHARED[key] for key in shared}
    assert "snap" in shared


def test_the_command_has_them_too() -> None:
    upright = get_command(app).commands["upright"]  # type: ignore[attr-defined]
    found = {option.name: option.default for option in upright.params}
    assert found["snap"] == defaults.SNAP and found["refine"] == defaults.LOOKS
    for flag in ("expand", "crop", "same_size"):
        assert found[flag] is False  # none of them: defaults.CORNERS
    assert found["model"] is found["fill"] is found["min_confidence"] is None


@pytest.mark.parametrize("name", ["UprightTransformer", "module"])
def test_where_sizes_are_fixed_the_docstring_says_so(name: str) -> None:
    text = " ".join((inspect.getdoc({"module": Module}.get(name, ENTRIES[name])) or "").split())
    assert "keeps its size" in text or "All images of a batch have one size" in text
    assert given(Module.from_pretrained)["canvas"] == defaults.FIXED_CORNERS


@pytest.mark.parametrize("name", zoo.names())
def test_thresholds_of_every_model_are_read_in_one_place(name: str) -> None:
    card = zoo.find(name).card
    least = thresholds_of(card)
    module = Module.from_pretrained(name)
    if card.abstain is not None:
        assert (module.abstain, module.most_upright) == (least.confidence, least.upright)
    assert (module.least_quarter, module.least_exact) == (least.quarter, least.exact)
    job = JobSettings(name, min_confidence=least.confidence, min_angle=least.angle)
    assert (job.thresholds.quarter, job.thresholds.exact) == (
        *(Thresholds.quarter, Thresholds.exact),
    )


def test_a_card_may_name_some_of_the_thresholds() -> None:
    shipped = cards.to_json(zoo.find("ring").card)
    card = cards.parse({**shipped, "abstain": {"confidence": 0.7, "quarter": 0.9}})
    assert thresholds_of(card) == Thresholds(confidence=0.7, quarter=0.9)
    assert thresholds_of(replace(card, abstain=None)) == Thresholds()
    assert {field.name for field in fields(Thresholds)} == {
        *("confidence", "angle", "upright", "quarter", "exact", "tilts"),
    }


def test_a_confidence_replaces_all_chances_of_the_card() -> None:
    card = replace(zoo.find("ring").card, abstain=Thresholds(0.9, 3.0, 0.01))
    assert thresholds_for(card, 0.4) == Thresholds(0.4, 0.0, 1.0, 0.4, 0.0, True)
    assert thresholds_for(card, 0.9) == Thresholds(0.9, 0.0, 1.0, 0.9, 0.0, True)
    assert thresholds_for(card, None) == ALWAYS
    for wrong in ("sure", True, float("nan"), -1):
        with pytest.raises(ValueError, match="abstain must be a confidence, 'card'"):
            thresholds_for(card, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("confidence", [0.92, 0.99, 1.1])
def test_a_higher_confidence_than_that_of_the_card_turns_nothing_more(confidence: float) -> None:
    least = thresholds_of(zoo.find("general").card)
    strict = thresholds_for(zoo.find("general").card, confidence)
    assert strict.confidence == confidence and strict.quarter == max(confidence, least.quarter)
    assert replace(strict, confidence=least.confidence, quarter=least.quarter) == least


def test_every_entry_point_makes_the_same_of_a_sideways_photo(tmp_path: Path) -> None:
    with Image.open(PICTURES / "astronaut.webp") as picture:
        upright = picture.convert("RGB")
    sideways = upright.transpose(Image.Transpose.ROTATE_90)
    sideways.save(tmp_path / "a.png")
    assert main(["upright", str(tmp_path / "a.png"), "-o", str(tmp_path / "b.png"), "-j", "1"]) == 0
    with Image.open(tmp_path / "b.png") as made:
        found = [np.asarray(made), np.asarray(canonicalize(sideways).image)]
    found.append(np.asarray(Upright()(sideways)))
    found.append(canonicalize(np.asarray(sideways)).image)
    for one in found:
        assert np.array_equal(one, np.asarray(upright))  # to the pixel


@pytest.mark.parametrize("snap", ["auto", "90", "none"])
@pytest.mark.parametrize("around", [Surroundings(), Surroundings(plain=True), Surroundings(12.0)])
@pytest.mark.parametrize("sure", [1.0, None])
def test_an_untrusted_model_turns_nothing(
    snap: Snap, around: Surroundings, sure: float | None
) -> None:
    card = replace(zoo.find("ring").card, trust=("The data is symmetric.",))
    chances = None if sure is None else np.eye(8, dtype=np.float32)[2]
    answer = Answer(90.0, sure, 1, chances, 0.0, 1.0)
    assert decide(answer, thresholds_for(card, "card"), snap, around).turn is None
    assert decide(answer, thresholds_for(card, 0.5), "none", around).turn is not None
