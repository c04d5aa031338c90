"""Whole jobs: the plan for a data set, and a run from a folder of pictures to its card."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import beams_of, paper_config

from radialbeams.cards import measurement
from radialbeams.cards import read as read_card
from radialbeams.training import export
from radialbeams.training.data import in_test
from radialbeams.training.recipe import Recipe
from radialbeams.training.runs import complete, measure, plan
from radialbeams.training.weights import sha256


@pytest.mark.parametrize(
    ("data", "parent", "view", "beam_length"),
    [
        ("coil100", 128, 182, 64),
        ("lfw", 250, 354, 125),
        ("fashion-mnist", 28, 40, 14),
        ("cifar10", 32, 46, 16),
    ],
)
def test_the_plan_for_a_data_set_is_the_papers(
    data: str, parent: int, view: int, beam_length: int
) -> None:
    recipe = plan(data, None, {}, {})
    assert (recipe.data, recipe.parent_size) == (data, parent)
    assert (recipe.model.view_size, beams_of(recipe.model).beam_length) == (view, beam_length)
    assert recipe == Recipe(data, recipe.model, parent)  # all else is as the paper has it


def test_changes_go_on_top_of_the_plan() -> None:
    recipe = plan("coil100", None, {"batch": 7, "prior": "full"}, {"num_beams": 16}, size=64)
    assert (recipe.batch, recipe.prior, recipe.parent_size) == (7, "full", 64)
    model = paper_config(recipe.model)
    assert (model.num_beams, model.view_size, model.beam_length) == (16, 92, 32)


def test_changes_go_on_top_of_a_recipe_file(tmp_path: Path) -> None:
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps(plan("lfw", None, {"steps": 9}, {"latent": 64}).to_dict()))
    recipe = plan("photos", file, {"batch": 3}, {"epsilon": 2})
    assert (recipe.data, recipe.steps, recipe.batch) == ("photos", 9, 3)
    model = paper_config(recipe.model)
    assert (model.latent, model.epsilon, model.view_size) == (64, 2, 354)


def test_a_recipe_file_fixes_the_size(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"A recipe file fixes the size of the images; leave"):
        plan("coil100", tmp_path / "any.json", {}, {}, size=64)


# --- a run from start to end ---


def test_a_run_leaves_weights_onnx_card_and_metrics(finished_run: Path) -> None:
    assert {path.name for path in finished_run.iterdir()} == {
        "recipe.json",
        "metrics.jsonl",
        "checkpoint.safetensors",
        "model.safetensors",
        "model.onnx",
        "model.json",
        "report.html",
    }
    card = read_card(finished_run / "model.json")
    for ending in ("safetensors", "onnx"):
        assert getattr(card.sha256, ending) == sha256(finished_run / f"model.{ending}")
    assert card.training.steps_done == 6
    assert card.parity <= 1e-4


def test_a_run_is_measured_on_pictures_that_it_did_not_see(finished_run: Path) -> None:
    card = read_card(finished_run / "model.json")
    held_out = sum(in_test(f"photo{i}") for i in range(40))
    figures = card.metrics["paper"]
    assert (figures.split, figures.seeds) == ("test", 3)
    assert figures.evaluation.n == 3 * held_out
    assert card.data.training_images == 40 - held_out
    assert 0 < figures.evaluation.mean < 180


def test_a_finished_run_is_not_trained_again(
    finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = shutil.copytree(finished_run, tmp_path / "tiny")
    onnx = finished_run / "model.onnx"
    monkeypatch.setattr(export, "_write_graph", lambda model, to: shutil.copy(onnx, to))
    recipe = Recipe.from_dict(json.loads((again / "recipe.json").read_text()))
    said: list[tuple[int, str]] = []
    card = complete(
        recipe, again, devices="cpu", on_progress=lambda step, text: said.append((step, text))
    )
    assert card.training.steps_done == 6
    assert [text.split()[0] for _, text in said] == ["exporting", "measuring", "writing"]
    for name in ("model.safetensors", "metrics.jsonl", "model.json"):
        assert (again / name).read_bytes() == (finished_run / name).read_bytes()


def test_a_measure_says_how_it_was_made(finished_run: Path, photo_folder: Path) -> None:
    figures = measurement(measure(
        finished_run / "model", str(photo_folder), split="all", seeds=2, jpeg=80, by_group=True,
        limit=10, devices="cpu",
    ))  # fmt: skip
    assert figures["n"] == 20
    assert (figures["data"], figures["protocol"]) == (str(photo_folder), "paper")
    assert (figures["split"], figures["seeds"], figures["jpeg"]) == ("all", 2, 80)
    assert figures["groups"] == {"": pytest.approx(figures["mean"])}


def test_another_protocol_is_refused_with_a_sentence(
    finished_run: Path, photo_folder: Path
) -> None:
    with pytest.raises(ValueError, match="papers"):
        measure(finished_run / "model", str(photo_folder), protocol="papers")  # type: ignore[arg-type]


def test_a_model_of_larger_views_than_leakfree_allows_is_not_measured_on_them(
    finished_run: Path, photo_folder: Path
) -> None:
    with pytest.raises(ValueError, match="leakfree"):
        measure(finished_run / "model", str(photo_folder), protocol="leakfree", devices="cpu")


def test_a_folder_without_held_out_pictures_is_refused_before_training(
    photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_write_graph", lambda model, to: to.write_bytes(b"graph"))
    monkeypatch.setattr(export, "parity", lambda model, path: 0.0)
    for path in photo_folder.iterdir():
        if not in_test(path.stem):
            (tmp_path / "photos").mkdir(exist_ok=True)
            shutil.copy(path, tmp_path / "photos")
    model = {"num_beams": 8, "latent": 16, "lstm_layers": 1}
    recipe = plan(str(tmp_path / "photos"), None, {"steps": 1, "batch": 4}, model, size=28)
    with pytest.raises(ValueError, match="test split"):
        complete(recipe, tmp_path / "run", devices="cpu")
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_a_ring_is_planned_on_leak_free_views_of_the_datas_own_size() -> None:
    recipe = plan("lfw", None, {"steps": 10}, {"num_beams": 32}, decoder="ring")
    assert (recipe.protocol, recipe.parent_size, recipe.steps) == ("leakfree", 250, 10)
    assert (recipe.model.architecture, recipe.model.view_size) == ("ring", 112)
    assert beams_of(recipe.model).num_beams == 32
