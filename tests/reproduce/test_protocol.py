"""The plan of `reproduce protocol`, and that what it says follows from the figures."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

from conftest import ROOT

from radialbeams.reproduce import beam_length, protocol
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.training_record import TrainingRecord
from radialbeams.training.recipe import Recipe


def records(settings: ReproduceSettings) -> dict[str, TrainingRecord]:
    found = {}
    for training in protocol.trainings(settings):
        figures = dict.fromkeys(protocol.STORED_FIGURES, 1.0 + training.recipe.seed)
        point = {"circle_loss": 0.1, "mean": 1.0, "median": 1.0}
        found[training.name] = TrainingRecord.from_dict(
            {
                "tags": training.tags,
                "training_images": 9,
                "measured": {"so2": figures},
                "curve": {"step": [1, 2, 3], "circle_loss": [2.0, 1.0, 0.5]},
                "validations": [{"step": s, "so2": point} for s in (1, 2)],
            }
        )
    return found


def test_five_seeds_on_each_set_under_the_papers_protocol() -> None:
    planned = protocol.trainings(ReproduceSettings())
    assert Counter(t.recipe.data for t in planned) == {"coil100": 5, "lfw": 5}
    assert {t.recipe.protocol for t in planned} == {"paper"}
    assert {(t.recipe.steps, t.recipe.batch) for t in planned} == {(4096, 128)}


def test_the_recipes_are_those_that_the_models_were_shipped_from() -> None:
    for data in protocol.DATA:
        text = (ROOT / "recipes" / f"bic.{data}.json").read_text(encoding="utf-8")
        assert protocol.pretrained_recipe(data) == Recipe.from_dict(json.loads(text))
        mine = protocol.recipe(data, 3, ReproduceSettings())
        shipped = protocol.pretrained_recipe(data)
        assert replace(mine, steps=shipped.steps, batch=shipped.batch, seed=0) == shipped


def test_the_reproduction_stands_first_and_ours_beside_it(tmp_path: Path) -> None:
    from radialbeams.reproduce import figures

    found = {"mean": 8.0, "std": 1.0, "values": [7.0, 9.0]}
    cells = [
        {"data": data, "length": length, "padding": "zeros", "degrees": found, "mean": found}
        for data in protocol.DATA
        for length in ("A", "B")
    ]
    (tmp_path / "beam-length.json").write_text(json.dumps({"data": {"cells": cells}}))
    weights = {data: {"paper_equivalent": 9.54} for data in protocol.DATA}
    (tmp_path / "authors.json").write_text(json.dumps(weights))
    finding = protocol.run(ReproduceSettings(out=tmp_path), records(ReproduceSettings()))
    assert next(iter(finding.ours)) == "paper-equivalent error, COIL-100"
    assert finding.ours["paper-equivalent error, LFW"] == (
        "8.00° ± 1.00° over 2 seeds, 7.00° to 9.00°"
    )
    assert finding.ours["paper-equivalent error, LFW, our optimizer"] == (
        "3.00° ± 1.58° over 5 seeds, 1.00° to 5.00°"
    )
    assert set(protocol.EXPERIMENT.paper) <= set(finding.ours)
    assert "on COIL-100 8.0° with the paper's optimizer, where the paper prints 13°" in finding.why
    assert "its authors' weights measure 9.5°" in finding.why
    data = json.loads(json.dumps({"data": finding.data}))
    with figures.style():
        for suffix, figure in protocol.draw(data).items():
            figures.save(figure, tmp_path / f"protocol{suffix}", quick=True)


def test_both_optimizers_train_the_same_network_on_the_same_views() -> None:
    """So what differs between their figures is what this lists."""
    for data in protocol.DATA:
        ours = vars(protocol.recipe(data, 0, ReproduceSettings()))
        kind = beam_length.LengthKind(data, "B", "zeros")
        papers = vars(beam_length.recipe(kind, 0, ReproduceSettings()))
        assert {name for name in ours if ours[name] != papers[name]} == {
            *("learning_rate", "schedule", "clip"),
            *("average", "weight_decay", "augmentation"),
        }


def test_without_the_papers_optimizer_ours_is_not_put_in_its_place(tmp_path: Path) -> None:
    finding = protocol.run(ReproduceSettings(out=tmp_path), records(ReproduceSettings()))
    assert "paper-equivalent error, LFW" not in finding.ours
    assert "not measured here with the paper's optimizer" in finding.why


def test_quick_settings_answer_nothing() -> None:
    settings = ReproduceSettings(quick=True)
    assert protocol.run(settings, records(settings)).why.startswith(QUICK)
