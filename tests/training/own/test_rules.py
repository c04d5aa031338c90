"""The rules: from what lies in a folder to a recipe, with a sentence for each choice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from radialbeams.training.own import rules
from radialbeams.training.own.rules import ENDLESS, Budget, plan, read_config
from radialbeams.training.own.scan import Scan, ScannedImage
from radialbeams.training.own.shards import Stored
from radialbeams.training.own.starts import AHEAD, StartTrial, best_start, find_start

STORED = Stored("0.png", "0.png")


def folder_of(count: int, size: tuple[int, int]) -> Scan:
    images = tuple(
        ScannedImage(f"{i}.png", "", size, f"{i:064x}", "", STORED) for i in range(count)
    )
    return Scan(Path("pictures"), images)


def test_a_start_decides_network_and_views() -> None:
    start = find_start("ring.coil100-objects")
    assert start is not None
    made = plan(folder_of(300, (250, 250)), "image", 240, start, Budget(5.0), {}, gpu=False)
    assert made.recipe.model == start.recipe.model
    assert (made.recipe.parent_size, made.recipe.protocol) == (128, "leakfree")
    assert made.recipe.steps == ENDLESS
    assert "250 pixels" in made.reasons[0] and "ring.coil100-objects" in made.reasons[0]
    general = find_start("general")
    assert general is not None
    recipe = plan(folder_of(9, (250, 250)), "image", 7, general, Budget(5.0), {}, gpu=False).recipe
    assert (recipe.sigma, recipe.reach) == (general.recipe.sigma, general.recipe.reach)


@pytest.mark.parametrize(
    ("side", "parent", "view", "beams"), [(40, 64, 28, 48), (100, 100, 45, 48), (900, 128, 57, 64)]
)
def test_from_scratch_the_images_decide(side: int, parent: int, view: int, beams: int) -> None:
    scan = folder_of(300, (side, side))
    recipe = plan(scan, "image", 240, None, Budget(None, 7), {}, gpu=False).recipe
    assert (recipe.parent_size, recipe.model.view_size) == (parent, view)
    assert recipe.model.num_bins == beams
    assert recipe.steps == 7


def test_new_groups_need_stronger_views_than_known_things() -> None:
    scan = folder_of(300, (128, 128))
    by_group = plan(scan, "group", 240, None, Budget(), {}, gpu=False)
    by_image = plan(scan, "image", 240, None, Budget(), {}, gpu=False)
    assert by_group.recipe.augmentation.mirror and not by_image.recipe.augmentation.mirror
    assert "new groups" in by_group.reasons[-1]


def test_images_that_are_not_square_get_filled_corners() -> None:
    made = plan(folder_of(300, (640, 480)), "image", 240, None, Budget(), {}, gpu=False)
    assert made.recipe.augmentation.fill == 0.3
    assert "not square" in made.reasons[-1]


def test_the_general_encoder_is_partly_frozen_on_a_cpu_only() -> None:
    scan, start = folder_of(300, (250, 250)), find_start("general")
    on_cpu, on_gpu = (plan(scan, "group", 240, start, Budget(), {}, gpu=gpu) for gpu in (0, 1))
    assert (on_cpu.recipe.frozen, on_gpu.recipe.frozen) == (rules.FROZEN, 0)


def test_settings_go_on_top_field_by_field(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"batch": 9, "augmentation": {"zoom": 0.4}}))
    scan = folder_of(300, (128, 128))
    recipe = plan(scan, "image", 240, None, Budget(), read_config(file), gpu=False).recipe
    assert (recipe.batch, recipe.augmentation.zoom) == (9, 0.4)
    assert recipe.augmentation.noise == rules.KNOWN["noise"]


def test_an_unknown_setting_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"learningrate": 1}')
    with pytest.raises(ValueError) as refusal:
        read_config(file)
    words = str(refusal.value)
    assert words.startswith(f"{file}: Unknown in a file of settings: learningrate. Known: model, ")
    assert words.endswith("seed. Did you mean learning_rate?")
    assert "protocol" not in words and "split_by" not in words  # known, but fixed


# --- starts ---


def test_the_paper_s_network_is_no_start() -> None:
    with pytest.raises(ValueError, match="leak-free views"):
        find_start("bic.lfw")


def test_the_best_start_is_the_one_that_is_least_off() -> None:
    probes = [
        StartTrial("ring", 8.0),
        StartTrial("ring.coil100-objects", 5.0),
        StartTrial("general", 60.0),
    ]
    name, sentence = best_start(probes, gpu=False)
    assert name == "ring.coil100-objects"
    assert "ring 8.0°" in sentence


def test_the_slow_encoder_has_to_be_well_ahead_on_a_cpu() -> None:
    probes = [StartTrial("ring", 8.0), StartTrial("general", 8.0 * AHEAD + 0.1)]
    assert best_start(probes, gpu=False)[0] == "ring"
    assert best_start(probes, gpu=True)[0] == "general"


def test_a_start_with_a_larger_error_than_another_is_explained() -> None:
    near = [StartTrial("ring", 3.3), StartTrial("general", 3.0)]
    sentence = best_start(near, gpu=False)[1]
    assert "general trains much more slowly on a CPU, so it is chosen only if" in sentence
    assert "at most 50% of the next one" in sentence
    assert "slowly" not in best_start(near, gpu=True)[1]
