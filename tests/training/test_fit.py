"""The loop: it learns, it can be killed and goes on to the bit, it stops with a reason."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import SIZE, TINY_RING, easy_images, paper_config

from radialbeams.cards import DataCard
from radialbeams.nn.bic import BICConfig
from radialbeams.nn.prior import PRIOR_MODES, PriorMode
from radialbeams.training.augment import Augmentation
from radialbeams.training.data import ImageSet
from radialbeams.training.fit import Fit, Progress
from radialbeams.training.recipe import Recipe
from radialbeams.training.weights import load_model, read_card

# The same sums in the same order; and threads cost more than they give on views this small.
pytestmark = pytest.mark.usefixtures("one_thread")

CPU = torch.device("cpu")


@pytest.fixture
def recipe(tiny_config: BICConfig) -> Recipe:
    return Recipe("easy", tiny_config, parent_size=28, batch=8, steps=8, learning_rate=1e-3)


def begin(recipe: Recipe, images: ImageSet, folder: Path, **options: Any) -> Fit:
    return Fit(recipe, images, folder, device=CPU, **{"log_every": 1, **options})


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def losses(folder: Path) -> list[tuple[int, int, float, float]]:
    return [(x["step"], x["epoch"], x["circle_loss"], x["prior_loss"]) for x in lines(folder)]


class Killed(Exception):
    pass


def kill_at(step: int) -> Any:
    def on_progress(progress: Progress) -> None:
        if progress.step == step:
            raise Killed

    return on_progress


# --- it can be killed ---

# Logs step 7, and is gone before that step is saved.
RUN_AND_KILL = """
import json, os, signal, sys
from pathlib import Path
import numpy as np
import torch
from radialbeams.training.data import ImageSet
from radialbeams.training.fit import Fit
from radialbeams.training.recipe import Recipe

torch.set_num_threads(1)
recipe, pixels, folder = map(Path, sys.argv[1:])
pixels = torch.from_numpy(np.load(pixels))
images = ImageSet("easy", pixels, tuple(map(str, range(len(pixels)))), ("",) * len(pixels))
fit = Fit(
    Recipe.from_dict(json.loads(recipe.read_text())), images, folder,
    device=torch.device("cpu"), log_every=1, save_seconds=0,
)
fit.run(lambda progress: progress.step == 7 and os.kill(os.getpid(), signal.SIGKILL))
"""


def test_a_run_that_was_killed_goes_on_and_ends_equal_to_the_bit(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    everything = Augmentation(mirror=True, jitter=0.2, noise=0.02, gamma=0.1, gray=0.2)
    recipe = replace(
        recipe, steps=12, prior="dynamic", augmentation=everything, average=0.9, clip=1.0
    )
    begin(recipe, pictures, tmp_path / "whole").run()

    (tmp_path / "recipe.json").write_text(json.dumps(recipe.to_dict()))
    np.save(tmp_path / "pixels.npy", pictures.images.numpy())
    names = ("recipe.json", "pixels.npy", "resumed")
    command = [sys.executable, "-c", RUN_AND_KILL, *(str(tmp_path / name) for name in names)]
    assert subprocess.run(command, timeout=240).returncode == -signal.SIGKILL
    assert not (tmp_path / "resumed" / "model.safetensors").exists()
    assert [line["step"] for line in lines(tmp_path / "resumed")] == [1, 2, 3, 4, 5, 6, 7]

    resumed = begin(recipe, pictures, tmp_path / "resumed")
    assert resumed.at.step == 6  # the second of the five batches of epoch 2 comes next
    resumed.run()
    whole, again = (tmp_path / name for name in ("whole", "resumed"))
    assert losses(again) == losses(whole)
    assert [line["step"] for line in lines(whole)] == list(range(1, 13))
    name = "model.safetensors"
    assert (again / name).read_bytes() == (whole / name).read_bytes()


def test_a_run_killed_before_its_first_checkpoint_logs_each_step_once(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    with pytest.raises(Killed):
        begin(recipe, pictures, tmp_path, save_seconds=1000).run(kill_at(3))
    begin(recipe, pictures, tmp_path).run()
    assert [line["step"] for line in lines(tmp_path)] == list(range(1, 9))


def test_the_start_of_a_killed_run_is_validated_once(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    options = {"held_out": pictures, "validate_start": True}
    with pytest.raises(Killed):
        begin(recipe, pictures, tmp_path, save_seconds=1000, **options).run(kill_at(3))
    begin(recipe, pictures, tmp_path, **options).run()
    assert [line["step"] for line in lines(tmp_path) if "held_out" in line] == [0]


def test_half_a_line_of_a_killed_run_is_forgotten(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    with pytest.raises(Killed):
        begin(recipe, pictures, tmp_path, save_seconds=0).run(kill_at(3))
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "st')
    begin(recipe, pictures, tmp_path).run()
    assert [line["step"] for line in lines(tmp_path)] == list(range(1, 9))


def test_a_finished_run_does_not_train_again(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    first = begin(recipe, pictures, tmp_path).run()
    weights = (tmp_path / "model.safetensors").read_bytes()
    second = begin(recipe, pictures, tmp_path).run()
    assert first.training.steps_done == second.training.steps_done == 8
    assert (tmp_path / "model.safetensors").read_bytes() == weights
    assert len(lines(tmp_path)) == 8


def test_another_recipe_in_the_same_folder_is_refused(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    begin(recipe, pictures, tmp_path)
    other = replace(recipe, seed=1, learning_rate=0.5)
    text = r"holds a run with another recipe \(different: learning_rate, seed\)\. Use the same"
    with pytest.raises(ValueError, match=text):
        begin(other, pictures, tmp_path)


def test_nothing_but_whole_files_is_left(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    begin(recipe, pictures, tmp_path).run()
    assert {path.name for path in tmp_path.iterdir()} == {
        "recipe.json",
        "metrics.jsonl",
        "checkpoint.safetensors",
        "model.safetensors",
        "model.json",
    }


# --- what it draws ---


def seen_in_two_epochs(recipe: Recipe, images: ImageSet, folder: Path) -> list[dict[int, float]]:
    """The angle that each image got, epoch by epoch."""
    fit = begin(recipe, images, folder)
    seen: list[dict[int, float]] = [{}, {}]
    for epoch, batch in fit._batches():
        if epoch > 2:
            return seen
        pairs = zip(batch.rows.tolist(), batch.angles.tolist(), strict=True)
        seen[epoch - 1] |= dict(pairs)
        fit.at.step += 1
    raise RuntimeError("the batches ended")


def test_every_image_is_seen_once_an_epoch_in_another_order(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    first, second = seen_in_two_epochs(recipe, pictures, tmp_path)
    assert sorted(first) == sorted(second) == list(range(40))
    assert list(first) != list(second) and list(first) != sorted(first)


def test_draw_image_gives_each_image_one_angle_for_ever(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    first, second = seen_in_two_epochs(replace(recipe, draw="image"), pictures, tmp_path)
    assert first == second
    assert len(set(first.values())) == 40


def test_draw_view_gives_each_image_a_new_angle_every_epoch(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    first, second = seen_in_two_epochs(recipe, pictures, tmp_path)
    assert all(first[row] != second[row] for row in first)


def test_fewer_images_than_a_batch_are_one_batch(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    fit = begin(replace(recipe, batch=64, steps=2), pictures, tmp_path)
    assert fit.run().training.steps_done == 2
    assert [line["epoch"] for line in lines(tmp_path)] == [1, 2]


# --- it learns ---


def test_the_optimizer_is_the_papers_adam(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    (group,) = begin(replace(recipe, learning_rate=1e-4), pictures, tmp_path).optimizer.param_groups
    assert (group["lr"], group["betas"], group["weight_decay"]) == (1e-4, (0.9, 0.999), 0)


def test_it_learns_an_easy_problem(recipe: Recipe, tmp_path: Path) -> None:
    recipe = replace(recipe, batch=32, steps=120, learning_rate=1e-2)
    fit = begin(recipe, easy_images(200), tmp_path, held_out=easy_images(64, seed=1))
    before = fit.validate().mean
    fit.run()
    found = losses(tmp_path)
    assert found[0][2] > 1  # about 2 is chance
    assert np.mean([circle for *_, circle, _ in found[-10:]]) < 0.1
    assert before > 60  # chance is 90°
    assert fit.validate().mean < 12


def test_a_prior_that_is_off_costs_nothing_and_one_that_is_on_is_minimised(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    begin(recipe, pictures, tmp_path / "off").run()
    assert {prior for *_, prior in losses(tmp_path / "off")} == {0}
    recipe = replace(recipe, prior="full", steps=40, learning_rate=3e-3)
    begin(recipe, pictures, tmp_path / "full").run()
    priors = [prior for *_, prior in losses(tmp_path / "full")]
    assert np.mean(priors[-5:]) < np.mean(priors[:5])


def test_a_dynamic_prior_is_alone_in_the_first_epoch(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    fit = begin(replace(recipe, prior="dynamic", steps=5), pictures, tmp_path)
    before = {name: value.clone() for name, value in fit.model.decoder.state_dict().items()}
    fit.run()
    for name, value in fit.model.decoder.state_dict().items():
        assert torch.equal(value, before[name])  # the prior does not reach the decoder


def test_a_run_leaves_the_callers_random_numbers_alone(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    before = torch.get_rng_state()
    begin(recipe, pictures, tmp_path).run()
    assert torch.equal(torch.get_rng_state(), before)


def test_the_average_is_what_is_kept(recipe: Recipe, pictures: ImageSet, tmp_path: Path) -> None:
    fit = begin(replace(recipe, steps=25, average=0.99), pictures, tmp_path)
    initial = {name: value.clone() for name, value in fit.average.items()}
    fit.run()
    kept, _ = load_model(tmp_path / "model")
    for name, value in kept.state_dict().items():
        assert torch.equal(value, fit.average[name])
    for other in (fit.model.state_dict(), initial):
        assert any(not torch.equal(value, other[name]) for name, value in fit.average.items())


def test_an_average_over_a_very_short_run_is_not_the_initial_weights(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    fit = begin(replace(recipe, steps=4, average=0.99), pictures, tmp_path)
    initial = {name: value.clone() for name, value in fit.average.items()}
    fit.run()
    kept, _ = load_model(tmp_path / "model")
    assert any(not torch.equal(value, initial[name]) for name, value in kept.state_dict().items())


def test_one_cycle_warms_up_and_ends_near_zero(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    recipe = replace(recipe, schedule="one-cycle", steps=40)
    fit, rates = begin(recipe, pictures, tmp_path), []
    for fit.at.step in range(40):
        rates.append(fit._learning_rate())
    assert int(np.argmax(rates)) in (3, 4)
    assert max(rates) == pytest.approx(1e-3) and 0 < rates[0] < 3e-4
    assert 0 < rates[-1] < 1e-5


# --- it stops with a reason ---


def test_a_loss_that_is_not_a_number_stops_the_run(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    with pytest.raises(FloatingPointError, match=r"The loss is nan at step \d+\. Lower the learn"):
        begin(replace(recipe, learning_rate=1e30), pictures, tmp_path).run()
    assert not (tmp_path / "model.safetensors").exists()


def test_minutes_end_a_run_before_its_steps(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    recipe = replace(recipe, steps=10**6)
    card = begin(recipe, pictures, tmp_path, minutes=0.2 / 60).run()
    assert 0 < card.training.steps_done < 10**4
    assert 0.2 <= card.training.seconds < 5
    # Nor does it begin anew: the minutes are those of all its parts together.
    again = begin(recipe, pictures, tmp_path, minutes=0.2 / 60).run()
    assert again.training.steps_done == card.training.steps_done


def test_images_of_another_size_are_refused_with_the_right_one(
    recipe: Recipe, tmp_path: Path
) -> None:
    images = easy_images(4, size=32)
    with pytest.raises(ValueError, match=r"images of 28 pixels; got 32\. Load them at the"):
        begin(recipe, images, tmp_path / "run")
    text = r"expects views of 40 pixels, but paper views of 32 px images have 46\. Set view_size"
    with pytest.raises(ValueError, match=text):
        begin(replace(recipe, parent_size=32), images, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_images_of_other_channels_are_refused(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    gray = replace(pictures, images=pictures.images[:, :1])
    with pytest.raises(ValueError, match=r"model expects 3 channels; the images have 1\. Load the"):
        begin(recipe, gray, tmp_path)


def test_validation_without_held_out_images_is_refused(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="validate_every needs held_out images"):
        begin(recipe, pictures, tmp_path, validate_every=1).run()


def test_validation_is_logged_and_changes_nothing(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path
) -> None:
    begin(recipe, pictures, tmp_path / "plain").run()
    begin(recipe, pictures, tmp_path / "watched", held_out=pictures, validate_every=4).run()
    measured = [line for line in lines(tmp_path / "watched") if "held_out" in line]
    assert [line["step"] for line in measured] == [4, 8]
    assert measured[0]["held_out"]["n"] == 40
    plain, watched = (tmp_path / name / "model.safetensors" for name in ("plain", "watched"))
    assert plain.read_bytes() == watched.read_bytes()


def test_the_card_says_what_was_done(recipe: Recipe, pictures: ImageSet, tmp_path: Path) -> None:
    card = begin(recipe, pictures, tmp_path / "mine").run()
    assert read_card(tmp_path / "mine" / "model.json") == card
    assert card.name == "mine"
    assert card.data == DataCard("easy", 40)
    assert card.training.recipe == recipe.to_dict()
    assert (card.protocol.name, card.protocol.parent_size) == ("paper", 28)


def test_a_run_that_is_interrupted_has_saved_all_its_steps(
    tmp_path: Path, pictures: ImageSet, tiny_config: BICConfig
) -> None:
    def interrupt(progress: object) -> None:
        signal.raise_signal(signal.SIGINT)

    recipe = Recipe("easy", tiny_config, parent_size=SIZE, batch=8, steps=30)
    fit = Fit(recipe, pictures, tmp_path, device=torch.device("cpu"), log_every=3)
    with pytest.raises(KeyboardInterrupt):
        fit.run(interrupt)
    again = Fit(recipe, pictures, tmp_path, device=torch.device("cpu"), log_every=3)
    assert again.at.step == 3


def test_a_repeated_group_comes_more_often_in_an_epoch(recipe: Recipe, tmp_path: Path) -> None:
    pixels = torch.zeros(5, 3, 28, 28, dtype=torch.uint8)
    images = ImageSet("two", pixels, tuple("abcde"), ("x", "y", "y", "x", "y"))
    often = replace(recipe, batch=7, repeats={"x": 2})
    _, batch = next(begin(often, images, tmp_path / "a")._batches())
    assert sorted(batch.rows.tolist()) == [0, 0, 1, 2, 3, 3, 4]
    assert len(set(batch.angles.tolist())) == 7
    wrong = replace(recipe, repeats={"z": 2})
    with pytest.raises(ValueError, match=r"repeats z; the groups of two are x, y\."):
        begin(wrong, images, tmp_path / "b")


def test_a_run_can_begin_with_the_weights_of_another(recipe: Recipe, tmp_path: Path) -> None:
    images = easy_images(16)
    begin(recipe, images, tmp_path / "first").run()
    stem = tmp_path / "first" / "model"
    again = begin(replace(recipe, learning_rate=0.0), images, tmp_path / "again", start=stem)
    card = again.run()
    kept, made = load_model(stem)[0].state_dict(), again.averaged().state_dict()
    names = [name for name, _ in again.model.named_parameters()]
    assert names and all(torch.equal(kept[name], made[name]) for name in names)
    assert card.training.start.name == "first"
    model = paper_config(recipe.model)
    wider = replace(model, latent=2 * model.latent)
    other = replace(recipe, model=wider)
    with pytest.raises(ValueError, match="a different network than the recipe's"):
        begin(other, images, tmp_path / "other", start=stem)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("prior", PRIOR_MODES)
def test_on_a_gpu_a_captured_step_trains_and_is_measured(
    recipe: Recipe, pictures: ImageSet, tmp_path: Path, prior: PriorMode
) -> None:
    recipe = replace(recipe, prior=prior, group="cyclic", steps=60)
    options: dict[str, Any] = {"held_out": pictures, "validate_every": 30, "log_every": 1}
    Fit(recipe, pictures, tmp_path, device=torch.device("cuda"), **options).run()
    circle = [line["circle_loss"] for line in lines(tmp_path) if "circle_loss" in line]
    assert len(circle) == 60 and sum(circle[-10:]) < 0.8 * sum(circle[:10])
    assert sum("held_out" in line for line in lines(tmp_path)) == 2


def test_validations_are_spread_over_a_run(tmp_path: Path) -> None:
    fit = Fit(
        Recipe("easy", TINY_RING, 64, "leakfree", steps=8, batch=4),
        easy_images(8, size=64),
        tmp_path,
        device=torch.device("cpu"),
        held_out=easy_images(4, seed=1, size=64),
        validations=4,
    )
    told: list[dict[str, Any]] = []
    fit.run(on_validation=told.append)
    assert [line["step"] for line in told] == [2, 4, 6, 8]
    assert [line["step"] for line in fit.folder.lines() if "held_out" in line] == [2, 4, 6, 8]


def test_a_run_that_its_minutes_end_has_a_last_line(tmp_path: Path) -> None:
    recipe = Recipe("easy", TINY_RING, 64, "leakfree", steps=10**6, batch=4)
    fit = Fit(recipe, easy_images(8, size=64), tmp_path, device=torch.device("cpu"), minutes=1e-9)
    fit.run()
    assert [line["step"] for line in fit.folder.lines()] == [fit.at.step] == [1]


def test_a_finished_run_is_lengthened_and_never_shortened(tmp_path: Path) -> None:
    def run(steps: int) -> int:
        recipe = Recipe("easy", TINY_RING, 64, "leakfree", steps=steps, batch=4)
        fit = Fit(recipe, easy_images(8, size=64), tmp_path, device=torch.device("cpu"))
        fit.run()
        return fit.at.step

    assert [run(2), run(5)] == [2, 5]
    with pytest.raises(ValueError, match=r"another recipe \(different: steps\)"):
        run(3)
