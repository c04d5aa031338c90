"""The frame of `radialbeams reproduce`: files, resuming, sharing, figures from JSON alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import ROOT
from matplotlib.figure import Figure

from radialbeams.cli import main
from radialbeams.nn.bic import BICConfig
from radialbeams.reproduce import figures, registry, runner, thumbnails, trainings
from radialbeams.reproduce.__main__ import main as without_typer
from radialbeams.reproduce.experiment import Experiment, Finding
from radialbeams.reproduce.records import write_record
from radialbeams.reproduce.seed_statistics import compare, detectable, spread, unclear
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.reproduce.trainings import PlannedTraining, complete, read
from radialbeams.training.fit import Fit
from radialbeams.training.recipe import Recipe

SIZE = 28
NAME = "geometry"  # any registered name will do


@pytest.fixture
def recipe(photo_folder: Path) -> Recipe:
    model = BICConfig.for_images(SIZE, num_beams=8, latent=16, lstm_layers=1)
    return Recipe(str(photo_folder), model, SIZE, batch=8, steps=6, learning_rate=1e-3)


@pytest.fixture
def two(recipe: Recipe) -> list[PlannedTraining]:
    first = PlannedTraining("first", replace(recipe, group="cyclic"), {"kind": "a"}, validations=2)
    return [first, PlannedTraining("second", replace(recipe, seed=1), {"kind": "b"}, keep=True)]


def settings(folder: Path, **changes: Any) -> ReproduceSettings:
    return ReproduceSettings(quick=True, out=folder, devices="cpu", **changes)


@pytest.fixture
def toy(two: list[PlannedTraining], monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """Stands in for a registered experiment."""

    def run(settings: ReproduceSettings, records: Any) -> Finding:
        means = [record.errors()["mean"] for record in records.values()]
        data = {"means": means, "curve": [1, 2, 3]}
        return Finding({"mean": means[0]}, "because", data, seconds=2.0)

    def draw(record: dict[str, Any]) -> dict[str, Figure]:
        found = {}
        for suffix in ("", "more"):
            found[suffix] = figures.new()
            axes = found[suffix].subplots()
            axes.plot(record["data"]["curve"], label="one")
            axes.plot(record["data"]["curve"][::-1], label="other")
            figures.label_ends(axes)
        return found

    def conclude(data: dict[str, Any]) -> tuple[dict[str, Any], str]:
        return {"mean": data["means"][0]}, "because"

    toy = Experiment(NAME, "a claim", {"mean": 13}, run, draw, conclude, lambda settings: two)
    monkeypatch.setattr(registry, "find", lambda name: toy)
    return toy


# --- from a name to files ---


@pytest.mark.usefixtures("toy")
def test_an_experiment_leaves_its_json_and_its_figures(tmp_path: Path) -> None:
    files = runner.reproduce(NAME, settings(tmp_path))
    assert [path.relative_to(tmp_path).as_posix() for path in files] == [
        f"{NAME}.json",
        *(f"{NAME}{suffix}.{ending}" for suffix in ("", "-more") for ending in ("png", "svg")),
    ]
    record = json.loads(files[0].read_text())
    assert record["claim"] == "a claim"
    assert record["paper"] == {"mean": 13}
    assert record["ours"]["mean"] == record["data"]["means"][0]
    assert record["command"] == f"radialbeams reproduce {NAME} --quick"
    assert (record["settings"], record["hardware"]) == ("quick", "cpu")
    assert (record["seeds"], record["trainings"]) == ([0, 1], 2)
    assert record["efforts"] == ["6 × 8"], "steps × batch"
    assert record["seconds"] >= 2.0, "that of the measurements counts"


@pytest.mark.usefixtures("toy")
def test_figures_are_drawn_again_from_json_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = settings(tmp_path)
    files = runner.reproduce(NAME, asked)
    before = {path: path.read_bytes() for path in files}
    for path in files[1:]:
        path.unlink()
    for path in asked.runs(NAME).glob("*.json"):
        path.unlink()
    monkeypatch.setattr(trainings, "_run", lambda *_: pytest.fail("trained"))
    assert runner.reproduce(NAME, asked, redraw=True) == files
    assert {path: path.read_bytes() for path in files} == before


@pytest.mark.usefixtures("toy")
def test_there_is_nothing_to_draw_before_a_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Run it first, without --redraw"):
        runner.reproduce(NAME, settings(tmp_path), redraw=True)


@pytest.mark.usefixtures("toy")
def test_trainings_only_leaves_what_a_later_call_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = settings(tmp_path)
    files = runner.reproduce(NAME, asked, trainings_only=True)
    assert files == [asked.runs(NAME) / f"{name}.json" for name in ("first", "second")]
    assert not (tmp_path / f"{NAME}.json").exists()
    monkeypatch.setattr(trainings, "_run", lambda *_: pytest.fail("trained again"))
    assert runner.reproduce(NAME, asked)[0] == tmp_path / f"{NAME}.json"


@pytest.mark.usefixtures("toy")
def test_without_matplotlib_the_extra_is_named_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "find_spec", lambda name: None)
    monkeypatch.setattr(trainings, "_run", lambda *_: pytest.fail("trained"))
    with pytest.raises(ValueError, match=r"\.\[experiments\].*--trainings-only"):
        runner.reproduce(NAME, settings(tmp_path))


def test_only_quick_figures_are_marked(tmp_path: Path) -> None:
    for quick in (True, False):
        figures.save(figures.new(), tmp_path / str(quick), quick=quick)
    assert figures.QUICK_MARK in (tmp_path / "True.svg").read_text()
    assert figures.QUICK_MARK not in (tmp_path / "False.svg").read_text()


def test_quick_results_do_not_replace_full_ones() -> None:
    assert ReproduceSettings(quick=True).folder != ReproduceSettings().folder == Path("results")


def test_settings_refuse_nonsense() -> None:
    with pytest.raises(ValueError, match="jobs must be at least 1; got 0"):
        ReproduceSettings(jobs=0)
    assert ReproduceSettings(seeds=2).seeds_of(quick=1, full=5) == range(2)
    assert ReproduceSettings(quick=True).seeds_of(quick=1, full=5) == range(1)


# --- trainings ---


def test_a_training_leaves_what_was_measured_and_little_else(
    two: list[PlannedTraining], tmp_path: Path
) -> None:
    asked = settings(tmp_path)
    records, seconds = complete(NAME, two, asked)
    first, second = records["first"], records["second"]
    assert seconds > 0
    assert (first.tags, first.hardware) == ({"kind": "a"}, "cpu")
    assert set(first.measured) == {"so2", "cyclic"}
    assert first.steps[-1] == 6
    assert first.validated_at == [3, 6]
    assert set(first.validations[0]) == {"step", "so2", "cyclic"}
    assert second.validations == []
    left = {path.name for path in asked.runs(NAME).iterdir()}
    assert left == {"first.json", "second.json", "second.safetensors", ".work"}
    assert list((asked.runs(NAME) / ".work").iterdir()) == []


def test_the_loss_that_is_kept_is_that_of_the_errors() -> None:
    kept = dict.fromkeys(trainings.STORED_FIGURES, 0.0) | {"paper_equivalent": 41.06}
    assert trainings.summary(kept)["circle_loss"] == pytest.approx(0.492, abs=1e-3)


def test_kept_weights_are_those_that_were_measured(
    two: list[PlannedTraining], tmp_path: Path
) -> None:
    asked = settings(tmp_path)
    records, _ = complete(NAME, two, asked)
    model = trainings.load(two[1], asked, NAME)
    assert sum(p.numel() for p in model.parameters()) == records["second"].parameters
    torch.manual_seed(two[1].recipe.seed)
    fresh = Fit(
        two[1].recipe,
        trainings._images(two[1].recipe, "train", None, None),
        tmp_path / "again",
        device=torch.device("cpu"),
    )
    fresh.run()
    for name, value in fresh.averaged().state_dict().items():
        assert torch.equal(value, model.state_dict()[name])
    with pytest.raises(ValueError, match="Expected the weights of a training"):
        trainings.load(two[0], asked, NAME)


def test_what_is_there_is_not_run_again(
    two: list[PlannedTraining], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = settings(tmp_path)
    records, _ = complete(NAME, two[:1], asked)
    run: list[str] = []
    monkeypatch.setattr(trainings, "_run", lambda training, *_: run.append(training.name))
    with pytest.raises(ValueError, match="1 trainings of geometry are still being run"):
        complete(NAME, two, asked)
    assert run == ["second"]
    assert complete(NAME, two[:1], asked) == (records, 0.0)


def test_a_result_of_another_recipe_is_refused(two: list[PlannedTraining], tmp_path: Path) -> None:
    asked = settings(tmp_path)
    complete(NAME, two[:1], asked)
    other = replace(two[0], recipe=replace(two[0].recipe, steps=7))
    with pytest.raises(ValueError, match="got that of another one"):
        read(other, asked.runs(NAME))
    with pytest.raises(ValueError, match="got that of another one"):
        read(replace(two[0], images=20), asked.runs(NAME))


def test_a_result_from_before_a_new_field_still_counts(
    two: list[PlannedTraining], tmp_path: Path
) -> None:
    asked = settings(tmp_path)
    complete(NAME, two[:1], asked)
    place = asked.runs(NAME) / "first.json"
    record = json.loads(place.read_text())
    del record["recipe"]["clip"]
    place.write_text(json.dumps(record))
    assert read(two[0], asked.runs(NAME)) is not None


class Killed(Exception):
    pass


def test_a_killed_training_goes_on_from_its_checkpoint(
    two: list[PlannedTraining], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed, _ = complete(NAME, two[:1], settings(tmp_path / "whole"))

    def die(done: float, total: float, text: str) -> None:
        if done == 4:
            raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(trainings, "Fit", partial(Fit, save_seconds=0.0))
        complete(NAME, two[:1], settings(tmp_path / "killed", show=die))
    begun: list[int] = []
    train = Fit._train

    def watched(self: Fit, *arguments: Any) -> None:
        begun.append(self.at.step)
        train(self, *arguments)

    monkeypatch.setattr(Fit, "_train", watched)
    records, _ = complete(NAME, two[:1], settings(tmp_path / "killed"))
    assert begun == [3]  # what was saved before the step that killed it
    assert records["first"].measured == undisturbed["first"].measured
    assert records["first"].curve == undisturbed["first"].curve


def test_a_training_that_diverges_is_a_result(two: list[PlannedTraining], tmp_path: Path) -> None:
    exploding = replace(two[0], recipe=replace(two[0].recipe, learning_rate=1e30))
    records, _ = complete(NAME, [exploding], settings(tmp_path))
    assert records["first"].diverged.startswith("The loss is nan")
    assert not records["first"].finished
    assert "measured" not in json.loads((tmp_path / "runs" / NAME / "first.json").read_text())


def test_two_trainings_of_one_name_are_refused(two: list[PlannedTraining], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unique names of trainings; got twice: first"):
        complete(NAME, [two[0], two[0]], settings(tmp_path))


@pytest.mark.long
def test_a_process_that_fails_is_quoted_and_its_log_is_kept(
    two: list[PlannedTraining], tmp_path: Path
) -> None:
    asked = settings(tmp_path, jobs=2)
    with pytest.raises(ValueError, match=r"failed: .*choice: 'nonsense'.*repeat the command"):
        complete("nonsense", two[:1], asked)
    assert (asked.runs("nonsense") / ".process-0.log").is_file()


def test_curves_are_thinned_by_averages(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    values = np.linspace(2, 0, 640)
    lines = [{"step": i + 1, "circle_loss": v, "prior_loss": 0} for i, v in enumerate(values)]
    metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    curve, _ = trainings.curves(metrics)
    assert set(curve) == {"step", "circle_loss"}
    assert len(curve["step"]) == trainings.POINTS
    assert curve["circle_loss"][0] == pytest.approx(values[:10].mean(), rel=1e-3)
    assert trainings.curves(tmp_path / "none") == ({"step": [], "circle_loss": []}, [])


# --- names and commands ---


def test_every_registered_experiment_is_whole() -> None:
    assert registry.names() == [name for name in registry.SUMMARIES if name in registry.names()]
    for name in registry.names():
        experiment = registry.find(name)
        assert experiment.name == name
        assert experiment.claim
        for quick in (True, False):
            planned = experiment.trainings(ReproduceSettings(quick=quick))
            assert len({training.name for training in planned}) == len(planned)


def test_the_error_for_an_unknown_name_lists_the_known_ones() -> None:
    for ask in (registry.find, registry.chosen):
        with pytest.raises(ValueError, match=r"Expected one of geometry.*; got 'nonsense'"):
            ask("nonsense")


def test_all_are_in_their_order() -> None:
    assert registry.chosen("all") == registry.names()


def test_the_command_lists_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == registry.names()


Ask = Callable[[list[str]], int]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("ask", [lambda words: main(["reproduce", *words]), without_typer])
def test_the_command_prints_where_the_files_are(
    ask: Ask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask([NAME, "--quick", "--out", str(tmp_path), "--devices", "cpu"]) == 0
    printed = capsys.readouterr().out.split()
    assert printed[0] == str(tmp_path / f"{NAME}.json")
    assert all(Path(line).is_file() for line in printed)


@pytest.mark.usefixtures("toy")
def test_the_command_says_what_was_found_and_what_was_trained_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", NAME, "--quick", "--out", str(tmp_path), "--devices", "cpu"]
    for kept in ("none", "all"):
        assert main(words) == 0
        said = capsys.readouterr().err
        assert f"trainings, {kept} of them read from {tmp_path / 'runs' / NAME}" in said
        record = json.loads((tmp_path / f"{NAME}.json").read_text(encoding="utf-8"))
        assert record["why"] in said
        assert all(f"{name}: the paper {said_}" in said for name, said_ in record["paper"].items())


@pytest.mark.parametrize("ask", [lambda words: main(["reproduce", *words]), without_typer])
def test_one_that_fails_does_not_stop_the_rest(
    ask: Ask,
    toy: Experiment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def find(name: str) -> Experiment:
        if name == "broken":
            raise RuntimeError("it broke")
        return replace(toy, name=name, trainings=lambda settings: [], run=empty)

    def empty(settings: ReproduceSettings, records: Any) -> Finding:
        return Finding({}, "", {"curve": [1, 2]})

    monkeypatch.setattr(registry, "names", lambda: ["broken", "whole"])
    monkeypatch.setattr(registry, "find", find)
    assert ask(["all", "--quick", "--out", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert "broken: RuntimeError: it broke" in err
    assert str(tmp_path / "whole.json") in out


def test_the_command_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from radialbeams.cli import reproduce

    missing = {"matplotlib"}
    monkeypatch.setattr(reproduce, "find_spec", lambda name: None if name in missing else name)
    assert main(["reproduce", NAME]) == 1
    assert "needs matplotlib" in (said := capsys.readouterr().err)
    assert '-e ".[experiments]"' in said


# --- figures ---


def test_labels_keep_apart_and_move_as_little_as_they_must() -> None:
    assert figures._apart([0.1, 0.9], 0.1) == [0.1, 0.9]
    placed = figures._apart([0.5, 0.51, 0.1, 0.52], 0.1)
    assert np.diff(sorted(placed)).min() >= 0.1 - 1e-9
    assert placed[0] < placed[1] < placed[3]
    assert placed[2] == 0.1


def test_pictures_survive_json() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (8, 9, 3), dtype=np.uint8)
    text = json.loads(json.dumps(thumbnails.encode(pixels)))
    assert np.array_equal(thumbnails.decode(text), pixels)


def test_two_kinds_of_runs_differ_only_beyond_chance() -> None:
    low, high = spread([1.0, 1.1, 0.9]), spread([2.0, 2.1, 1.9])
    assert (compare(low, high), compare(high, low)) == (-1, 1)
    # Two and a half standard errors: with three seeds each, that happens by chance.
    near = spread([1.0 + 2.5 * 0.0816 + shift for shift in (0.0, 0.1, -0.1)])
    assert compare(low, near) == 0
    assert compare(spread([1.0]), spread([9.0])) == 0


def test_where_every_run_diverged_there_is_nothing(tmp_path: Path) -> None:
    nothing = spread([])
    assert nothing["values"] == [] and compare(nothing, spread([1.0, 2.0])) == 0
    write_record(tmp_path / "x.json", {"a": [nothing], "b": {"c": float("inf")}}, ["a"])
    found = json.loads((tmp_path / "x.json").read_text())
    assert found == {"a": [{"mean": None, "std": None, "values": []}], "b": {"c": None}}


@pytest.mark.parametrize("name", registry.names())
def test_what_is_committed_is_worded_as_the_code_words_it(name: str) -> None:
    place = ROOT / "results" / f"{name}.json"
    if not place.is_file():
        pytest.skip(f"`radialbeams reproduce {name}` has not been run with full settings yet.")
    worded = json.loads(json.dumps(runner.reworded(registry.find(name), place)))
    assert worded == json.loads(place.read_text(encoding="utf-8")), (
        f"Run `radialbeams reproduce {name} --redraw` and commit what it wrote."
    )


def test_few_seeds_leave_large_differences_unnoticed() -> None:
    """Two seeds of LFW that lie 6° apart are not significant: the words must say why."""
    zeros, corner = spread([9.39, 11.63]), spread([16.78, 16.07])
    assert compare(zeros, corner) == 0
    least = detectable(zeros, corner)
    assert least > corner["mean"] - zeros["mean"]
    assert (
        unclear(zeros, corner) == f"no clear difference; one below {least:.0f}° would go unnoticed"
    )
    many = [spread(5 * one["values"]) for one in (zeros, corner)]
    assert detectable(*many) < 2 and compare(*many) == -1


def test_one_seed_judges_nothing() -> None:
    assert unclear(spread([1.0]), spread([2.0, 3.0])).startswith("one seed")


def test_a_detectable_difference_is_found_in_four_of_five_repetitions() -> None:
    generator = np.random.default_rng(0)
    least = detectable(spread([-1.0, 0.0, 1.0]), spread([-1.0, 0.0, 1.0]))
    found = [
        compare(*(spread(generator.normal(at, 1, 3).tolist()) for at in (0, least)))
        for _ in range(400)
    ]
    assert 0.7 < found.count(-1) / 400 < 0.9
