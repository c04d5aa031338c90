"""The variants of the prior in `reproduce prior`, and that its answer follows from the figures."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import paper_config

from radialbeams.nn.architectures import build
from radialbeams.nn.beams import bresenham_pixels
from radialbeams.nn.bic import BICConfig
from radialbeams.nn.prior import ToeplitzPrior, prior_loss
from radialbeams.reproduce import prior
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.training_record import TrainingRecord
from radialbeams.reproduce.trainings import Trained
from radialbeams.training.data import ImageSet
from radialbeams.training.fit import Fit
from radialbeams.training.recipe import Recipe

CPU = torch.device("cpu")


@pytest.fixture
def recipe() -> Recipe:
    model = BICConfig.for_images(28, num_beams=8, latent=16, lstm_layers=1)
    return Recipe("easy", model, 28, group="cyclic", prior="full", batch=8, steps=3)


def test_the_full_plan_has_five_runs_of_what_is_compared() -> None:
    planned = Counter(t.tags["kind"] for t in prior.trainings(ReproduceSettings()))
    for variant in ("exact", "authors"):
        for mode in ("off", "dynamic", "full"):
            assert planned[f"{variant}-paper-{mode}"] == 5
    assert planned["exact-leakfree-full"] == planned["squared-paper-full"] == 3
    for training in prior.trainings(ReproduceSettings()):
        assert training.recipe.group == "cyclic"
        assert training.recipe.steps == 4096


# --- the variants ---


def test_equal_beams_have_the_same_similarity_squared_or_not() -> None:
    torch.manual_seed(0)
    embeddings = torch.randn(2, 8, 4)
    rolled = embeddings.roll(3, 1)
    for kind in (ToeplitzPrior, prior.SquaredPrior):
        assert kind(8)(embeddings, rolled).argmax(-1).tolist() == [3, 3]
    far = 10 * torch.randn(2, 8, 4)
    # 1/(1 + d²) is smaller than 1/(1 + d) for d > 1, so that other shifts count for less.
    plain, squared = (kind(8)(far, far.roll(1, 1)) for kind in (ToeplitzPrior, prior.SquaredPrior))
    assert (squared[:, 1] > plain[:, 1]).all()


def test_the_printed_sign_rewards_errors() -> None:
    embeddings = torch.randn(2, 8, 4)
    angles = torch.zeros(2)
    right = prior_loss(angles, ToeplitzPrior(8)(embeddings, embeddings))
    printed = prior_loss(angles, prior.PrintedPrior(8)(embeddings, embeddings))
    assert torch.equal(printed, -right)


def test_border_beams_are_those_of_the_authors(recipe: Recipe) -> None:
    images = pictures()
    model = prior.border_network(recipe, images)
    c = paper_config(recipe.model)
    pixels = bresenham_pixels(c.num_beams, c.beam_length, c.epsilon, c.view_size, "border")
    flat = pixels[..., 1] * c.view_size + pixels[..., 0]
    assert torch.equal(model.beams.index, flat)
    exact = build(recipe.model)
    steeper = replace(recipe, model=replace(c, num_beams=16))
    border, plain = prior.border_network(steeper, images), build(steeper.model)
    assert torch.equal(exact.beams.index, flat)  # at 8 beams both point to the same pixels
    assert not torch.equal(border.beams.index, plain.beams.index)


@pytest.mark.parametrize("variant", ["authors", "squared", "printed"])
def test_every_variant_trains(variant: str, recipe: Recipe, tmp_path: Path) -> None:
    parts = prior.VARIANTS[variant].parts
    run = Fit(recipe, pictures(), tmp_path, device=CPU, parts=parts, log_every=1)
    run.run()
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").open()]
    assert len(lines) == recipe.steps
    assert all((line["prior_loss"] < 0) == (variant == "printed") for line in lines)


def pictures() -> ImageSet:
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (16, 3, 28, 28), generator=generator, dtype=torch.uint8)
    return ImageSet("easy", pixels, tuple(map(str, range(16))), ("",) * 16)


def test_quarter_turns_are_rolls_so_that_every_shift_is_found(
    recipe: Recipe, tmp_path: Path
) -> None:
    recipe = replace(recipe, model=replace(recipe.model, num_beams=4))  # type: ignore[call-arg]
    images = pictures()
    fit = Fit(recipe, images, tmp_path, device=CPU)
    trained = Trained(recipe, fit, fit.averaged(), images, CPU)
    assert prior.shift_found(trained) == 1.0


# --- the answer ---


def records(
    settings: ReproduceSettings, loss: Any, shift_found: float = 0.5
) -> dict[str, TrainingRecord]:
    found = {}
    for training in prior.trainings(settings):
        variant, _, mode = training.tags["kind"].split("-")
        value = loss(variant, mode) + 0.001 * training.recipe.seed
        figures = {"circle_loss": value, "paper_equivalent": 30 * value}
        point = {"circle_loss": value}
        found[training.name] = TrainingRecord.from_dict(
            {
                "tags": training.tags,
                "measured": {"so2": figures, "cyclic": figures, "shift_found": shift_found},
                "curve": {"step": [1, 2], "circle_loss": [2.0, value]},
                "validations": [{"step": 1, "so2": point, "cyclic": point}],
            }
        )
    return found


@pytest.mark.parametrize(
    ("hurts", "words"),
    [
        ({"authors"}, "the harm was a bug"),
        ({"authors", "exact"}, "the harm is not a bug"),
        ({"exact"}, "the exact prior makes the estimates worse"),
        (set(), "the prior does no visible harm"),
    ],
)
def test_the_answer_follows_from_the_losses(hurts: set[str], words: str) -> None:
    def loss(variant: str, mode: str) -> float:
        return 1.0 if variant in hurts and mode == "full" else 0.5

    finding = prior.run(ReproduceSettings(), records(ReproduceSettings(), loss))
    assert words in finding.why
    harm = finding.ours["against no prior: exact, paper, prior full"]
    assert harm.startswith("worse" if "exact" in hurts else "no clear difference; one below ")


def test_the_words_say_when_the_prior_did_its_own_job() -> None:
    def loss(variant: str, mode: str) -> float:
        return 1.0 if mode == "full" else 0.5

    for share, said in ((0.5, False), (0.97, True)):
        why = prior.run(ReproduceSettings(), records(ReproduceSettings(), loss, share)).why
        assert (
            "The prior reaches its own goal: the embeddings identify 97% of the shifts" in why
        ) == said


def test_quick_settings_answer_nothing(tmp_path: Path) -> None:
    from radialbeams.reproduce import figures

    settings = ReproduceSettings(quick=True)
    finding = prior.run(settings, records(settings, lambda variant, mode: 0.5))
    assert finding.why.startswith(QUICK)
    found = json.loads(json.dumps({"data": finding.data}))
    with figures.style():
        for suffix, figure in prior.draw(found).items():
            figures.save(figure, tmp_path / f"prior{suffix}", quick=True)
