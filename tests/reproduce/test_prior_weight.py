"""`reproduce prior-weight`: its loss, its gradients, and that its words follow the figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from radialbeams.nn.bic import BIC, BICConfig, bic_loss
from radialbeams.nn.losses import LossInputs, RingLoss
from radialbeams.nn.prior import ToeplitzPrior
from radialbeams.reproduce import (
    prior_weight,
    prior_weight_answer,
    prior_weight_measures,
    trainings,
)
from radialbeams.reproduce.prior_weight import WeightKind
from radialbeams.reproduce.seed_statistics import spread
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.training.data import ImageSet


def given() -> tuple[BIC, LossInputs]:
    torch.manual_seed(0)
    network = BIC(BICConfig(view_size=28, beam_length=13, num_beams=8, latent=16))
    views, upright = torch.rand(2, 4, 3, 28, 28)
    return network, LossInputs(
        views,
        torch.arange(4) * torch.pi / 4,
        torch.arange(4),
        lambda: upright,
        ToeplitzPrior(8),
        torch.ones(2),
        RingLoss(),
    )


def test_weight_one_after_the_hub_is_the_paper_s_loss() -> None:
    network, inputs = given()
    ours, paper = (
        loss(network, inputs) for loss in (prior_weight_measures.weighted("after", 1.0), bic_loss)
    )
    assert torch.allclose(ours[0], paper[0])
    assert torch.allclose(ours[1].prior, paper[1].prior)


def test_the_weight_scales_the_prior_alone() -> None:
    network, inputs = given()
    light, parts = prior_weight_measures.weighted("before", 0.1)(network, inputs)
    assert torch.allclose(light, parts.circle + 0.1 * parts.prior)
    assert not torch.allclose(parts.prior, bic_loss(network, inputs)[1].prior)


def test_before_the_hub_the_prior_trains_no_context_encoder() -> None:
    network, inputs = given()
    for place, reached in (("before", False), ("after", True)):
        network.zero_grad()
        total, parts = prior_weight_measures.weighted(place, 1.0)(network, inputs)
        (total - parts.circle).backward()  # the circle loss reaches it too
        with_prior = [p.grad.clone() for p in network.context.parameters()]
        network.zero_grad()
        prior_weight_measures.weighted(place, 0.0)(network, inputs)[0].backward()
        without = [p.grad for p in network.context.parameters()]
        same = all(torch.allclose(a, b) for a, b in zip(with_prior, without, strict=True))
        assert same is not reached


def test_whole_seeds_come_one_after_the_other() -> None:
    planned = prior_weight.trainings(ReproduceSettings())
    seeds = [training.recipe.seed for training in planned]
    assert seeds == sorted(seeds)
    assert len(planned) == prior_weight.SEEDS * (2 + 2 * 2 * len(prior_weight.WEIGHTS))


def test_a_training_measures_gradients_shifts_and_orbits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = prior_weight.trainings(ReproduceSettings(quick=True))
    one = next(t for t in plan if t.name == "leakfree-off-seed0")
    tiny = replace(
        one,
        recipe=replace(one.recipe, steps=2, batch=4),
        images=8,
        held_out=8,
        validations=2,
    )
    images = ImageSet(
        "random",
        torch.randint(0, 256, (8, 3, 48, 48), dtype=torch.uint8),
        tuple("abcdefgh"),
        tuple("abcdefgh"),
    )
    monkeypatch.setattr(trainings, "_images", lambda *_: images)
    found, _ = trainings.complete(
        "prior-weight", [tiny], ReproduceSettings(out=tmp_path, devices="cpu")
    )
    measured = found[tiny.name].measured
    assert len(measured["along"]) == 2
    assert -1 <= measured["gradients"]["before"]["cosine"] <= 1
    assert set(measured["shifts"]) == {"before", "after"}
    kinds = {(one["kind"], one["place"]) for one in measured["orbits"]}
    assert ("untrained", "pixels") in kinds


def cells(errors: dict[float, float]) -> dict[str, dict[str, Any]]:
    """Three seeds of every kind, with this mean error for a weight."""
    found = {}
    for kind in prior_weight.kinds():
        middle = errors[kind.weight]
        figures = {
            f"{name}_{place}": spread([value] * 3)
            for name, value in (("shifts", 0.9), ("cosine", 0.02), ("ratio", 1.0))
            for place in ("before", "after")
        }
        found[kind.name] = {
            **vars(kind),
            "seeds": 3,
            "cyclic": spread([middle - 0.01, middle, middle + 0.01]),
            **figures,
        }
    return found


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        (
            {0.0: 2.0, 0.01: 2.0, 0.1: 2.0, 1.0: 4.0},
            "hurts at weight 1 and not at 0.01 and 0.1",
        ),
        ({0.0: 2.0, 0.01: 3.0, 0.1: 3.0, 1.0: 4.0}, "a second task: it hurts at weight 0.01"),
        ({0.0: 2.0, 0.01: 2.0, 0.1: 2.0, 1.0: 2.0}, "neither: it does no clear harm"),
        ({0.0: 2.0, 0.01: 2.0, 0.1: 1.0, 1.0: 4.0}, "it helps in 4 of 12 comparisons (paper's"),
    ],
)
def test_the_answer_follows_the_figures(errors: dict[float, float], words: str) -> None:
    assert words in prior_weight_answer.answer(cells(errors))


def test_one_seed_answers_nothing() -> None:
    one = {
        name: {**cell, "seeds": 1}
        for name, cell in cells(dict.fromkeys((0, 0.01, 0.1, 1), 2.0)).items()
    }
    assert prior_weight_answer.answer(one) == (
        "open, with one seed of each; at weight 1 it changes the mean error by +0.00° to +0.00°"
    )


def test_a_weight_with_one_seed_is_no_evidence_that_a_light_prior_does_no_harm() -> None:
    found = cells({0.0: 2.0, 0.01: 2.0, 0.1: 2.0, 1.0: 4.0})
    for one in found.values():
        if one["weight"] in (0.01, 0.1):
            one["seeds"] = 1
    assert prior_weight_answer.answer(found) == (
        "it hurts at weight 1; lighter ones have too few seeds to judge"
    )
    for one in found.values():
        if one["weight"] == 1.0:
            one["cyclic"] = spread([1.5, 2.0, 2.5])
    assert prior_weight_answer.answer(found) == (
        "neither: it does no clear harm at weight 1; at weight 1 it changes the mean error by "
        "+0.00° to +0.00°; a harm below 1.6° on paper's views and 1.6° on leak-free views would "
        "go unnoticed"
    )


def test_short_trainings_are_called_short() -> None:
    for error, words in ((2.0, False), (18.0, True)):
        data = {
            "cells": cells(dict.fromkeys((0.0, 0.01, 0.1, 1.0), error)),
            "steps": 9,
            "notes": [],
        }
        data["pretrained"] = {
            "shifts": {"before": 0.5, "after": 0.4},
            "gradients": {place: {"cosine": 0.1, "ratio": 5.0} for place in ("before", "after")},
            "mean": 0.5,
        }
        assert ("these trainings are short" in prior_weight.sentence(data)) is words


def test_a_kind_without_a_prior_has_one_name() -> None:
    assert WeightKind("paper", "before").name == WeightKind("paper", "after").name == "paper-off"
