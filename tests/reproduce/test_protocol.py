"""The plan of `reproduce protocol`, and that what it says follows from the figures."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

from conftest import ROOT

from radialbeams.reproduce import protocol
from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.settings import QUICK, Settings
from radialbeams.training.recipe import Recipe


def records(settings: Settings) -> dict[str, Record]:
    found = {}
    for training in protocol.trainings(settings):
        figures = dict.fromkeys(protocol.KEPT, 1.0 + training.recipe.seed)
        point = {"circle_loss": 0.1, "mean": 1.0, "median": 1.0}
        found[training.name] = {
            "tags": training.tags,
            "training_images": 9,
            "measured": {"so2": figures},
            "curve": {"step": [1, 2, 3], "circle_loss": [2.0, 1.0, 0.5]},
            "validations": [{"step": s, "so2": point} for s in (1, 2)],
        }
    return found


def test_five_seeds_on_each_set_under_the_papers_protocol() -> None:
    planned = protocol.trainings(Settings())
    assert Counter(t.recipe.data for t in planned) == {"coil100": 5, "lfw": 5}
    assert {t.recipe.protocol for t in planned} == {"paper"}
    assert {(t.recipe.steps, t.recipe.batch) for t in planned} == {(4096, 128)}


def test_the_recipes_are_those_that_the_models_were_shipped_from() -> None:
    for data in protocol.DATA:
        text = (ROOT / "recipes" / f"bic.{data}.json").read_text(encoding="utf-8")
        assert protocol.shipped_recipe(data) == Recipe.from_dict(json.loads(text))
        mine = protocol.recipe(data, 3, Settings())
        shipped = protocol.shipped_recipe(data)
        assert replace(mine, steps=shipped.steps, batch=shipped.batch, seed=0) == shipped


def test_the_spread_is_said_and_drawn(tmp_path: Path) -> None:
    from radialbeams.reproduce import figures

    finding = protocol.run(Settings(), records(Settings()))
    assert (
        finding.ours["paper-equivalent error, LFW"] == "3.00° ± 1.58° over 5 seeds, 1.00° to 5.00°"
    )
    assert set(protocol.EXPERIMENT.paper) <= set(finding.ours)
    assert "3.0° on COIL-100 (worst seed 5.0°), where the paper reports 13°" in finding.why
    found = json.loads(json.dumps({"data": finding.data}))
    with figures.style():
        for suffix, figure in protocol.draw(found).items():
            figures.save(figure, tmp_path / f"protocol{suffix}", quick=True)


def test_quick_settings_answer_nothing() -> None:
    settings = Settings(quick=True)
    assert protocol.run(settings, records(settings)).why.startswith(QUICK)
