"""The plan of `reproduce beams`, and that its answer follows from the figures."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import beams_of

from radialbeams.nn.beams import named_length
from radialbeams.reproduce import beams
from radialbeams.reproduce.seed_statistics import compare, mean_curve, spread
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.training_record import TrainingRecord


def records(settings: ReproduceSettings, loss: Any) -> dict[str, TrainingRecord]:
    """What the trainings might have left: `loss(kind name, seed)` is the loss of each."""
    found = {}
    for training in beams.trainings(settings):
        value = loss(training.tags["kind"], training.recipe.seed)
        figures = {"circle_loss": value, "paper_equivalent": 30 * value, "mean": 20 * value}
        point = {"circle_loss": value, "mean": 1.0, "median": 1.0}
        groups = ("so2", "cyclic") if training.recipe.group == "cyclic" else ("so2",)
        found[training.name] = TrainingRecord.from_dict(
            {
                "tags": training.tags,
                "measured": {"so2": figures, "cyclic": figures},
                "curve": {"step": [1, 2, 3], "circle_loss": [2.0, 1.0, value]},
                "validations": [{"step": s, **dict.fromkeys(groups, point)} for s in (1, 2)]
                if training.validations
                else [],
            }
        )
    return found


# --- the plan ---


def test_the_full_plan_is_the_papers_five_counts_of_beams_with_their_seeds() -> None:
    planned = beams.trainings(ReproduceSettings())
    paper = [t for t in planned if t.recipe.protocol == "paper"]
    seeds = Counter(beams_of(t.recipe.model).num_beams for t in paper)
    # Two kinds of turns, each drawn in two ways; at 32 beams also until it fits.
    assert seeds == {4: 12, 8: 12, 16: 12, 32: 20 + 12, 64: 12}
    for training in paper:
        assert beams_of(training.recipe.model).beam_length == named_length("A", 128) == 37
        assert (training.recipe.steps, training.recipe.batch) == (4096, 128)
        fits = training.tags["kind"].endswith("-fits")
        assert training.recipe.learning_rate == (1e-3 if fits else 1e-4)
    leakfree = [t.recipe.model for t in planned if t.recipe.protocol == "leakfree"]
    assert {beams_of(model).num_beams for model in leakfree} == {32}


def test_kinds_differ_in_nothing_but_what_their_name_says() -> None:
    fixed, fresh = (beams.BeamsKind("paper", 32, "so2", draw) for draw in beams.DRAWS)
    one, other = (vars(beams.recipe(kind, 0, ReproduceSettings())) for kind in (fixed, fresh))
    assert {name for name in one if one[name] != other[name]} == {"draw"}


# --- the answer ---


def so2_fixed_is_worse(kind: str, seed: int) -> float:
    return (1.0 if "so2-fixed" in kind else 0.5) + 0.001 * seed


def fixed_is_worse(kind: str, seed: int) -> float:
    return (1.0 if "fixed" in kind else 0.5) + 0.001 * seed


def so2_is_worse(kind: str, seed: int) -> float:
    return (0.5 if "cyclic" in kind else 1.0) + 0.001 * seed


def nothing_is_worse(kind: str, seed: int) -> float:
    return 0.5 + 0.001 * seed


@pytest.mark.parametrize(
    ("losses", "words", "counts"),
    [
        (so2_fixed_is_worse, "so it comes from how angles are drawn", (7, 0, 7)),
        (fixed_is_worse, "so it comes from how angles are drawn", (7, 0, 0)),
        (so2_is_worse, "so the effect is real here", (7, 7, 7)),
        (nothing_is_worse, "not even with angles drawn as in the authors' code", (0, 0, 0)),
    ],
)
def test_the_answer_follows_from_the_losses(
    losses: Any, words: str, counts: tuple[int, int, int]
) -> None:
    finding = beams.run(ReproduceSettings(), records(ReproduceSettings(), losses))
    assert words in finding.why
    better = tuple(finding.ours[name]["C_B better"] for name in beams.COMPARISONS)
    assert better == counts


def test_quick_settings_answer_nothing() -> None:
    settings = ReproduceSettings(quick=True)
    assert beams.run(settings, records(settings, so2_fixed_is_worse)).why.startswith(QUICK)


def test_the_plainest_case_is_given_in_degrees() -> None:
    why = beams.run(ReproduceSettings(), records(ReproduceSettings(), so2_fixed_is_worse)).why
    assert "With 32 beams, trained to convergence, the paper-equivalent error is " in why
    assert why.count("°") == 3


def test_the_training_loss_is_that_of_the_end() -> None:
    curve = {"circle_loss": [2.0] * 18 + [0.5, 0.3]}
    assert beams.final_loss(TrainingRecord(curve=curve)) == pytest.approx(0.4)


def test_the_figures_need_nothing_but_json(tmp_path: Path) -> None:
    from radialbeams.reproduce import figures

    settings = ReproduceSettings(quick=True)
    finding = beams.run(settings, records(settings, so2_fixed_is_worse))
    found = json.loads(json.dumps({"data": finding.data}))
    with figures.style():
        drawn = beams.draw(found)
        assert set(drawn) == {"", "curves", "answer"}
        for suffix, figure in drawn.items():
            figures.save(figure, tmp_path / f"beams{suffix}", quick=True)


# --- seeds ---


def test_one_seed_differs_from_nothing_and_many_may() -> None:
    low, high = spread([0.1, 0.11, 0.09]), spread([0.5, 0.52, 0.48])
    assert (compare(low, high), compare(high, low), compare(low, low)) == (-1, 1, 0)
    assert compare(spread([0.1]), spread([0.9])) == 0
    assert compare(spread([0.1, 0.9]), spread([0.3, 0.8])) == 0


def test_curves_are_averaged_point_by_point() -> None:
    found = mean_curve([[1.0, 3.0], [2.0, 5.0, 9.0]])
    low, high, middle = [1.0, 3.0], [2.0, 5.0], [1.5, 4.0]
    assert found == {"mean": middle, "low": low, "high": high, "median": middle}
    astray = mean_curve([[1.0], [2.0], [90.0]])
    assert (astray["mean"], astray["median"]) == ([31.0], [2.0])
