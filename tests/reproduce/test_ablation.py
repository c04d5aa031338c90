"""The plan of `reproduce ablation`, and that its verdict follows from the figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from radialbeams.reproduce import ablation
from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.training_record import TrainingRecord


def records(settings: ReproduceSettings, mean: Any) -> dict[str, TrainingRecord]:
    """What the trainings might have left: `mean(variant)` is the error of each; None: diverged."""
    found = {}
    for training in ablation.trainings(settings):
        value = mean(training.tags["kind"].split("-", 1)[1])
        record: Record = {"tags": training.tags}
        if value is None:
            record["diverged"] = "The loss is nan."
        else:
            value += 0.001 * training.recipe.seed
            record["parameters"] = 7
            record["measured"] = {"so2": {"mean": value, "paper_equivalent": 2 * value}}
        found[training.name] = TrainingRecord(**record)
    return found


def hub_matters(variant: str) -> float | None:
    return {"hub-summed": None, "hub-dead": 9.0, "epsilon-3": 2.0}.get(variant, 4.0)


def test_each_variant_changes_one_thing_and_has_three_seeds() -> None:
    planned = ablation.trainings(ReproduceSettings())
    assert len(planned) == 2 * 3 * len(ablation.VARIANTS) == 66
    assert set(ablation.VARIANTS) == set(ablation.LABELS)
    for protocol in ablation.PROTOCOLS:
        base = vars(ablation.recipe(ablation.BASE, protocol, 0, ReproduceSettings()))
        for variant, changes in ablation.VARIANTS.items():
            other = vars(ablation.recipe(variant, protocol, 0, ReproduceSettings()))
            apart = {name for name in base if base[name] != other[name]}
            assert apart == (set() if variant == ablation.BASE else {"model"})
            mine, theirs = vars(base["model"]), vars(other["model"])
            assert {name for name in mine if mine[name] != theirs[name]} == set(changes)


def test_the_verdict_follows_from_the_errors() -> None:
    finding = ablation.run(ReproduceSettings(), records(ReproduceSettings(), hub_matters))
    signs = {one["variant"]: one["sign"] for one in finding.data["cells"]}
    assert {name: sign for name, sign in signs.items() if sign} == {
        "hub-summed": 1,
        "hub-dead": 1,
        "epsilon-3": -1,
    }
    assert "worse: hub by sum, sent to the rim in every layer, hub dead" in finding.why
    assert "better: ε = 3" in finding.why
    assert (
        "diverged" in finding.ours["mean error, paper, hub by sum, sent to the rim in every layer"]
    )
    unclear = finding.ours["mean error, paper, no context"]
    assert "(no clear difference; one below " in unclear


@pytest.mark.parametrize("mean", [hub_matters, lambda variant: None])
def test_the_figures_need_nothing_but_json(mean: Any, tmp_path: Path) -> None:
    from radialbeams.reproduce import figures

    settings = ReproduceSettings(quick=True)
    finding = ablation.run(settings, records(settings, mean))
    assert finding.why.startswith(QUICK)
    found = json.loads(json.dumps({"data": finding.data}, allow_nan=False))
    with figures.style():
        for suffix, figure in ablation.draw(found).items():
            figures.save(figure, tmp_path / f"ablation{suffix}", quick=True)


def test_what_is_far_off_is_a_number_and_leaves_the_others_room() -> None:
    settings = ReproduceSettings()
    errors = {"hub-summed": 90.0, "epsilon-3": 5.0}
    finding = ablation.run(settings, records(settings, lambda variant: errors.get(variant, 4.0)))
    figure = ablation.draw(json.loads(json.dumps({"data": finding.data})))[""]
    for axes in figure.axes:
        assert 5 < axes.get_xlim()[1] < 20
        assert [text.get_text() for text in axes.texts] == ["90° →"]
