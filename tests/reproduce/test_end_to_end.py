"""Canonicaliser and classifier as one network: where gradients go, equal sizes, a whole run."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from radialbeams.front.module import Canonicalizer
from radialbeams.nn.posterior import answer, mean_direction, posterior
from radialbeams.nn.ring_network import RingBIC, RingConfig
from radialbeams.reproduce import end_to_end, runner, trainings
from radialbeams.reproduce.end_to_end import VARIANTS, WAYS, JointTask
from radialbeams.reproduce.joint import (
    Joint,
    JointWay,
    Localisation,
    SmallClassifier,
    classifier_parameters,
    losses,
    parameters,
)
from radialbeams.reproduce.joint_fit import (
    JointDesign,
    TurnedImages,
    evaluate,
    joint_network,
    joint_parts,
    learning_curve,
    probe_of,
)
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.training.data import ImageSet
from radialbeams.training.fit import Fit, Progress
from radialbeams.training.leaks import CanaryEffort, measure_leak
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import LeakfreeViews

SIDE, PARENT = 28, 28
DESIGN = JointDesign(SIDE, (8, 16))
CONFIG = RingConfig(
    view_size=12,
    channels=1,
    num_beams=12,
    beam_length=12,
    epsilon=0,
    sampler="polar",
    stem=8,
    stem_stride=2,
    stages=(8,),
    width=16,
    dilations=(1, 2),
)
RECIPE = Recipe(
    "fashion-mnist",
    CONFIG,
    PARENT,
    protocol="leakfree",
    batch=32,
    steps=60,
    learning_rate=1e-2,
    schedule="one-cycle",
)


def drawn(count: int, seed: int = 0) -> ImageSet:
    """Two classes with an upper side: a bright half, and a bright wedge in it."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:PARENT, :PARENT] - (PARENT - 1) / 2
    half, wedge = (y < 0), (y < -np.abs(x))
    pixels = rng.integers(0, 60, (count, 1, PARENT, PARENT), dtype=np.uint8)
    for row in range(count):
        pixels[row, 0] += ((half, wedge)[row % 2] * 150).astype(np.uint8)
    groups = tuple(("half", "wedge")[row % 2] for row in range(count))
    return ImageSet("drawn", torch.from_numpy(pixels), tuple(map(str, range(count))), groups)


def network(way: JointWay) -> Joint:
    torch.manual_seed(0)
    return joint_network(RECIPE, way, DESIGN, classes=2)


def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Upright and turned images, angles, labels."""
    turned, angles = TurnedImages(SIDE), torch.tensor([0.3, 1.0, 2.5, 4.0, 5.0, 6.0])
    prepared = turned.prepare(drawn(6).images)
    labels = torch.tensor([0, 1] * 3)
    return turned.turn(prepared, 0 * angles), turned.turn(prepared, angles), angles, labels


def gradient(module: nn.Module | None) -> float:
    found = [p.grad for p in module.parameters() if p.grad is not None] if module else []
    return sum(float(g.abs().sum()) for g in found)


# --- which loss reaches which network ---


@pytest.mark.parametrize("name", [*WAYS, *VARIANTS])
def test_a_loss_moves_what_its_way_says(name: str) -> None:
    way = {**WAYS, **VARIANTS}[name]
    model = network(way)
    total, _ = losses(model, way, *batch())
    total.backward()
    assert gradient(model.classifier) > 0
    assert (model.localisation is not None) == way.localises
    assert (gradient(model.localisation) > 0) == way.localises


@pytest.mark.parametrize("answers", ["mean", "through", "beam"])
def test_the_class_loss_reaches_the_localisation_network(answers: Any) -> None:
    way = replace(WAYS["downstream"], answers=answers)
    model = network(way)
    losses(model, way, *batch())[0].backward()
    assert model.localisation is not None
    head = model.localisation.network.ring.head.weight.grad
    assert head is not None
    logits, offsets = head.abs().flatten(1).sum(1)
    assert offsets > 0
    assert (logits > 0) == (answers != "beam")  # the likeliest beam stays the likeliest
    stem = model.localisation.network.ring.stem.weight.grad
    assert stem is not None
    assert stem.abs().sum() > 0


def test_with_the_angle_loss_alone_the_class_loss_does_not_reach_it() -> None:
    grads = []
    for labels in ([0, 1] * 3, [1, 0] * 3):
        model = network(WAYS["angle"])
        upright, turned, angles, _ = batch()
        losses(model, WAYS["angle"], upright, turned, angles, torch.tensor(labels))[0].backward()
        assert model.localisation is not None
        grads.append([p.grad for p in model.localisation.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*grads, strict=True) if a is not None)


@pytest.mark.parametrize(
    ("name", "knows"), [("downstream", False), ("augmented", False), ("both", True)]
)
def test_only_the_angle_loss_knows_the_angle(name: str, knows: bool) -> None:
    model = network(WAYS[name])
    upright, turned, angles, labels = batch()
    told, _ = losses(model, WAYS[name], upright, turned, angles, labels)
    lied, _ = losses(model, WAYS[name], upright, turned, angles + 1, labels)
    assert (told != lied) == knows


def test_trained_apart_the_classifier_sees_upright_images_only() -> None:
    model = network(WAYS["apart"])
    upright, turned, angles, labels = batch()
    losses(model, WAYS["apart"], upright, turned, angles, labels)[0].backward()
    mine = [p.grad for p in model.classifier.parameters()]
    other = network(WAYS["apart"]).classifier
    nn.functional.cross_entropy(other(upright), labels).backward()
    for one, two in zip(mine, other.parameters(), strict=True):
        torch.testing.assert_close(one, two.grad)


def test_straight_through_turns_by_the_beam_and_moves_the_mean() -> None:
    torch.manual_seed(0)
    logits, offsets = torch.randn(4, 12, requires_grad=True), torch.randn(4, 12)
    through = Localisation(RingBIC(CONFIG), "through").read((logits, offsets))[0]
    found = posterior(logits, offsets)
    torch.testing.assert_close(through, answer(found))
    (mine,) = torch.autograd.grad(through.sum(), logits, retain_graph=True)
    (mean,) = torch.autograd.grad(mean_direction(found).sum(), logits)
    torch.testing.assert_close(mine, mean)


def test_an_unknown_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="answers must be one of beam, mean, through; got 'hard'"):
        Localisation(RingBIC(CONFIG), "hard")  # type: ignore[arg-type]


def test_it_is_the_canonicalizer_in_front_of_the_classifier() -> None:
    model = network(WAYS["both"]).eval()
    assert model.localisation is not None
    canonicalizer = Canonicalizer(
        model.localisation.network, parent_size=PARENT, returns="image"
    ).eval()
    _, turned, _, _ = batch()
    expected = nn.Sequential(canonicalizer, model.classifier)(turned)
    torch.testing.assert_close(model(turned).logits, expected)


# --- equal parameters, equal images ---


@pytest.mark.parametrize("quick", [True, False])
def test_all_ways_have_as_many_parameters(quick: bool) -> None:
    for task, classes in zip(
        end_to_end.tasks(ReproduceSettings(quick=quick)), (10, 100), strict=True
    ):
        counts = {
            name: parameters(joint_network(task.recipe(0), way, task.design, classes))
            for name, way in {**WAYS, **VARIANTS}.items()
        }
        assert max(counts.values()) < 1.01 * min(counts.values()), counts


def test_the_parameters_of_a_classifier_are_counted_without_it() -> None:
    assert classifier_parameters(3, 7, (5, 9)) == parameters(SmallClassifier(3, 7, (5, 9)))


def test_all_ways_meet_the_same_batches() -> None:
    by_way: dict[tuple[str, int], list[Any]] = {}
    for training in end_to_end.trainings(ReproduceSettings(seeds=2)):
        key = (training.tags["data"], training.recipe.seed)
        by_way.setdefault(key, []).append((training.recipe, training.images, training.held_out))
    assert len(by_way) == 4
    for same in by_way.values():  # rows and angles follow from the recipe alone
        assert len(same) >= len(WAYS)
        assert all(one == same[0] for one in same)


def test_large_parents_give_leakfree_images() -> None:
    parents = torch.randint(0, 256, (2, 3, 128, 128), dtype=torch.uint8)
    angles = torch.tensor([0.5, 3.0])
    turned, views = TurnedImages(56), LeakfreeViews(56)
    assert turned.leakfree(128)
    found = turned.turn(turned.prepare(parents), angles)
    torch.testing.assert_close(found, views.render(parents, angles).clamp(0, 1))


def test_small_parents_keep_their_whole_width() -> None:
    turned = TurnedImages(56)
    assert not turned.leakfree(28)
    parents = torch.full((1, 1, 28, 28), 255, dtype=torch.uint8)
    parents[..., 0] = 0  # the outermost column is in sight
    image = turned.turn(turned.prepare(parents), torch.zeros(1))[0, 0]
    assert image[28, 0] < 0.5 < image[28, 4]
    quarter = turned.turn(turned.prepare(parents), torch.full((1,), torch.pi / 2))[0, 0]
    torch.testing.assert_close(quarter, torch.rot90(image, 1), atol=1e-4, rtol=0)


# --- training ---


def fitted(folder: Path, name: str = "both", recipe: Recipe = RECIPE) -> Fit:
    parts, held_out = joint_parts(WAYS[name], DESIGN), drawn(40, seed=1)
    options: dict[str, Any] = {"held_out": held_out, "validate_every": 20}
    return Fit(recipe, drawn(80), folder, device=torch.device("cpu"), parts=parts, **options)


def test_a_tiny_training_learns_class_and_angle(tmp_path: Path) -> None:
    fit = fitted(tmp_path)
    probe = probe_of(fit, DESIGN, drawn(40, seed=1))
    before = evaluate(fit.averaged(), probe)  # type: ignore[arg-type]
    fit.run()
    evaluations = learning_curve(fit)
    assert [line["step"] for line in evaluations] == [20, 40, 60]
    after = evaluations[-1]["test"]
    assert after["turned"] > 0.9 > before["turned"]
    assert after["mean"] < 0.3 * before["mean"]


@pytest.mark.usefixtures("one_thread")
def test_a_killed_training_goes_on_where_it_was(tmp_path: Path) -> None:
    recipe = replace(RECIPE, steps=40)
    whole = fitted(tmp_path / "whole", recipe=recipe)
    whole.run()

    def kill(progress: Progress) -> None:
        if progress.step == 30:
            raise RuntimeError("killed")

    halved = fitted(tmp_path / "halved", recipe=recipe)
    halved.save_seconds = 0.0
    with pytest.raises(RuntimeError, match="killed"):
        halved.run(kill)
    resumed = fitted(tmp_path / "halved", recipe=recipe)
    assert 0 < resumed.at.step < 40
    resumed.run()
    assert learning_curve(resumed) == learning_curve(whole)
    for one, two in zip(resumed.model.parameters(), whole.model.parameters(), strict=True):
        torch.testing.assert_close(one, two, atol=0, rtol=0)


def test_a_class_that_was_not_trained_on_is_refused(tmp_path: Path) -> None:
    strange = replace(drawn(4), groups=("half", "wedge", "star", "half"))
    with pytest.raises(ValueError, match="star are in the test images only"):
        probe_of(fitted(tmp_path), DESIGN, strange)


def test_canaries_look_at_the_views_of_the_network_and_at_a_control(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = fitted(tmp_path, recipe=replace(RECIPE, steps=20))
    fit.run()
    trained = trainings.Trained(fit.recipe, fit, fit.averaged(), drawn(20), torch.device("cpu"))
    effort = CanaryEffort(views=64, parent=128, batch=32, small=True, fourfold=5.0)
    short = partial(measure_leak, test_views=64)
    monkeypatch.setattr(end_to_end, "measure_leak", short)
    found = end_to_end.measure_with_canaries(DESIGN, trained, effort)
    assert [line["protocol"] for line in found["canaries"]] == ["sighted", "sighted", "bilinear"]
    assert "turned" in found and found["along"][-1]["step"] == 20


# --- the whole experiment ---


def tiny(settings: ReproduceSettings) -> list[JointTask]:
    """Both data sets are drawn, and the networks are those of the experiment."""
    return [
        JointTask("fashion-mnist", "Fashion-MNIST", PARENT, 1, 4, 40, 20, DESIGN, 16),
        JointTask("coil100", "COIL-100", PARENT, 1, 4, 40, 20, DESIGN, 16),
    ]


@pytest.mark.long
def test_the_experiment_runs_resumes_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(end_to_end, "tasks", tiny)
    monkeypatch.setattr(trainings, "_read_images", lambda *asked: drawn(asked[-1]))
    asked = ReproduceSettings(quick=True, out=tmp_path, devices="cpu")
    runner.reproduce("end-to-end", asked, trainings_only=True)
    runs = sorted(asked.runs("end-to-end").glob("*.json"))
    assert len(runs) == 2 * len(WAYS)
    runs[0].unlink()
    left = {path: path.stat().st_mtime_ns for path in runs[1:]}
    files = runner.reproduce("end-to-end", asked)
    assert runs[0].is_file()  # the one that was missing, and no other
    assert {path: path.stat().st_mtime_ns for path in left} == left
    assert {path.name for path in files} >= {"end-to-end.json", "end-to-end-curves.png"}
    found = json.loads(files[0].read_text())
    ways = found["data"]["tasks"]["fashion-mnist"]["ways"]
    assert list(ways) == list(WAYS)
    assert "averaged" in ways["plain"] and "mean" not in ways["plain"]
    assert {"mean", "between_turns", "within_class"} <= set(ways["both"])
    accuracies = {name: way["turned"]["mean"] for name, way in ways.items()}
    reached = found["ours"][end_to_end.REACHED]
    assert reached == ("yes" if accuracies["both"] >= accuracies["apart"] else "no")
    told = found["ours"]["accuracy at any angle, Fashion-MNIST, trained apart"]
    assert told == f"{accuracies['apart']:.1%}"
