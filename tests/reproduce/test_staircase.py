"""The plan of `reproduce staircase`, its measures, and that its words follow from the figures."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import ROOT

from radialbeams.nn.bic import BIC, BICConfig
from radialbeams.nn.context import Hub
from radialbeams.nn.rotation import disc
from radialbeams.reproduce import pack, runner, staircase, staircase_designs, trainings
from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.staircase_measures import file_views, hub_share
from radialbeams.reproduce.training_record import TrainingRecord
from radialbeams.training.views import LeakfreeViews, PaperViews

# --- the plan ---


def test_each_stair_changes_one_thing() -> None:
    designs = list(staircase_designs.STAIRS.values())
    assert (
        set(staircase_designs.STAIRS)
        == set(staircase_designs.LABELS)
        == set(staircase_designs.CHANGES)
    )
    for before, after, change in zip(
        designs, designs[1:], list(staircase_designs.CHANGES.values())[1:], strict=False
    ):
        apart = {
            f.name for f in fields(before) if getattr(before, f.name) != getattr(after, f.name)
        }
        assert apart == set(change)
        assert len(apart) == 1


def test_whole_seeds_come_one_after_the_other() -> None:
    planned = staircase.trainings(ReproduceSettings())
    early = [t for t in planned if t.tags["row"] in staircase_designs.SIDE_BY_SIDE]
    seeds = [t.recipe.seed for t in planned if t not in early]
    assert seeds == sorted(seeds)
    places = [planned.index(t) for t in early if t.recipe.seed == 2]
    assert max(places) < 2 * len(staircase.rows())
    assert len(planned) == staircase.SEEDS * len(staircase.rows())
    one = [training for training in planned if training.recipe.seed == 0]
    assert [t.recipe.batch for t in one[:4]] == [512] * 4  # the longest first


def test_the_first_stair_is_the_authors_code_and_the_last_the_ring() -> None:
    planned = {t.name: t for t in staircase.trainings(ReproduceSettings())}
    first, last = planned["paper-authors-seed0"].recipe, planned["leakfree-decoder-seed0"].recipe
    assert (first.draw, first.learning_rate, first.schedule, first.average, first.clip) == (
        *("image", 1e-4, "constant"),
        *(0.0, 0.0),
    )
    assert isinstance(first.model, BICConfig)
    assert first.model.hub == "authors"
    assert last.model.architecture == "ring"


def test_beams_end_on_the_border_only_before_they_are_spaced_by_angle() -> None:
    planned = {t.tags["row"]: t for t in staircase.trainings(ReproduceSettings(quick=True))}
    images: Any = None
    built = {
        name: planned[f"paper-{name}"].parts.network(planned[f"paper-{name}"].recipe, images)
        for name in ("fresh", "spacing")
    }
    assert not torch.equal(built["fresh"].beams.index, built["spacing"].beams.index)


# --- measures ---


@pytest.fixture
def views() -> torch.Tensor:
    return torch.rand(3, 3, 30, 30, generator=torch.Generator().manual_seed(0))


def network(hub: Hub, layers: int = 3) -> BIC:
    torch.manual_seed(0)
    return BIC(
        BICConfig(
            view_size=30, num_beams=8, beam_length=14, latent=16, hub=hub, context_layers=layers
        )
    ).eval()


@pytest.mark.parametrize("hub", ["mean", "held-mean", "held-sum"])
def test_a_live_hub_has_a_share_of_the_gradient(hub: Hub, views: torch.Tensor) -> None:
    assert 0.01 < hub_share(network(hub), views, torch.tensor([0.0, 1.0, 2.0])) < 1


@pytest.mark.parametrize("hub", ["dead", "authors"])
def test_a_dead_hub_has_none(hub: Hub, views: torch.Tensor) -> None:
    assert hub_share(network(hub), views, torch.tensor([0.0, 1.0, 2.0])) == 0


def test_a_network_without_context_has_no_hub(views: torch.Tensor) -> None:
    assert hub_share(network("mean", layers=0), views, torch.tensor([0.0, 1.0, 2.0])) == 0


def test_cutting_the_hub_changes_gradients_and_no_values(views: torch.Tensor) -> None:
    from radialbeams.reproduce.staircase_measures import _without_hub

    model = network("mean")
    embeddings = model.encoder(model.beams(views))
    context: Any = model.context
    torch.testing.assert_close(_without_hub(context, embeddings), context(embeddings))


@pytest.mark.parametrize("made", [PaperViews(), LeakfreeViews(28)])
def test_files_show_what_views_show(made: PaperViews | LeakfreeViews) -> None:
    """Inside the circle that no turn cuts off, a file of Pillow's is close to a rendered view."""
    smooth = torch.nn.functional.interpolate(
        torch.rand(2, 3, 6, 6, generator=torch.Generator().manual_seed(1)), 64, mode="bicubic"
    )
    images, angles = smooth.clamp(0, 1).mul(255).byte(), torch.tensor([0.6, 4.0])
    shown = file_views(images, angles, made, torch.device("cpu"))
    rendered, wrong = made.render(images, angles), made.render(images, -angles)
    assert shown.shape == rendered.shape
    inside = disc(60) if isinstance(made, PaperViews) else disc(28)
    beside = (shown.shape[-1] - len(inside)) // 2
    inside = torch.nn.functional.pad(inside, [beside] * 4).bool()
    assert (shown - rendered)[..., inside].abs().mean() < 0.02
    assert (shown - wrong)[..., inside].abs().mean() > 0.05


def test_files_have_no_edge_that_turns() -> None:
    """On a plain ground, turned files differ from the upright one by the rounding of JPEG only."""
    images = torch.full((1, 3, 64, 64), 60, dtype=torch.uint8)
    views = PaperViews()
    files = file_views(images, torch.tensor([0.6]), views, torch.device("cpu"))
    assert (files - views.upright(images)).abs().max() < 0.01
    assert (views.render(images, torch.tensor([0.6])) - views.upright(images)).abs().max() > 0.2


# --- words and figures ---


def records(settings: ReproduceSettings, mean: Any) -> dict[str, TrainingRecord]:
    """What trainings might have left: `mean(row)` is the error of each; None: diverged."""
    found = {}
    for training in staircase.trainings(settings):
        value = mean(training.tags["row"])
        record: Record = {"tags": training.tags, "training_images": 7}
        record["recipe"] = {"steps": 5, "batch": 3}
        if value is not None:
            value += 0.01 * training.recipe.seed
            errors = {"mean": value, "median": value, "paper_equivalent": 2 * value, "flips": 0.0}
            files = {**errors, "mean": 3 * value}
            share = None if "decoder" in training.name else 0.25
            record["measured"] = {"so2": errors, "files": files, "hub_share": share}
        found[training.name] = TrainingRecord(**record)
    return found


def falling(row: str) -> float | None:
    if row == "context-one-cycle-held-sum":
        return None
    errors = {"leakfree-schedule": 4.0, "paper-rate": 2.0, "context-one-cycle-none": 20.0}
    return errors.get(row, 8.0)


def test_words_follow_from_the_errors() -> None:
    finding = staircase.run(ReproduceSettings(), records(ReproduceSettings(), falling))
    assert "one-cycle schedule (÷ 2.00)" in finding.why
    assert "rate 1e-3 (÷ 3.97)" in finding.why
    name = "context, leak-free views, one-cycle, "
    assert finding.ours[name + "the text's, hub by sum"] == "diverged"
    assert finding.ours[name + "no context encoder"].endswith("worse than the hub of bic")
    assert "25% of the gradient" in finding.ours[name + "the authors' wheel"]


def hubs(one_cycle: float, constant: float) -> dict[str, Record]:
    """Cells in which the text's hub has these errors, and that of `bic` has 8°."""
    errors = {
        "context-one-cycle-held-sum": one_cycle,
        "context-constant-held-sum": constant,
    }
    found = staircase.run(
        ReproduceSettings(), records(ReproduceSettings(), lambda row: errors.get(row, 8.0))
    )
    cells: dict[str, Record] = found.data["cells"]
    return cells


@pytest.mark.parametrize(
    ("one_cycle", "constant", "preferred", "words"),
    [
        (5.0, 8.0, "held-sum", "so it is the default of new networks"),
        (5.0, 9.0, "mean", "so the hub of bic is the default"),
        (8.0, 8.0, "mean", "so the hub of bic is the default"),
    ],
)
def test_the_texts_hub_is_preferred_if_it_is_better_somewhere_and_worse_nowhere(
    one_cycle: float, constant: float, preferred: str, words: str
) -> None:
    cells = hubs(one_cycle, constant)
    assert staircase.preferred_hub(cells) == preferred
    assert words in staircase.sentence(cells, [])
    assert f"({one_cycle + 0.02:.2f}° against 8.02°)" in staircase.sentence(cells, [])


def test_the_default_hub_follows_the_measurement() -> None:
    record = json.loads((ROOT / "results" / "staircase.json").read_text())
    assert BICConfig().hub == staircase.preferred_hub(record["data"]["cells"])


def test_unfinished_trainings_are_left_out_of_the_words() -> None:
    some = {
        name: record
        for name, record in records(ReproduceSettings(), falling).items()
        if name.endswith("seed0") and "decoder" not in name
    }
    finding = staircase.run(ReproduceSettings(), some)
    assert "not trained" in finding.ours[staircase_designs.LABELS["decoder"]]
    assert "±" not in finding.ours[staircase_designs.LABELS["hub"]]
    name = "context, leak-free views, one-cycle, the authors' wheel"
    assert finding.ours[name].endswith("one seed, so no difference can be judged")
    assert "Rows have 0 to 1 seeds" in finding.why


@pytest.mark.parametrize("mean", [falling, lambda row: None])
def test_figures_need_nothing_but_json(mean: Any, tmp_path: Path) -> None:
    from radialbeams.reproduce import figures

    settings = ReproduceSettings(quick=True)
    finding = staircase.run(settings, records(settings, mean))
    assert finding.why.startswith(QUICK)
    found = json.loads(json.dumps({"data": finding.data}, allow_nan=False))
    with figures.style():
        for suffix, figure in staircase.draw(found).items():
            figures.save(figure, tmp_path / f"staircase{suffix}", quick=True)


# --- packed data ---


def test_rounding_moves_no_value_by_more_than_half_a_step_but_the_brightest() -> None:
    every = np.arange(256, dtype=np.uint8)
    apart = np.abs(pack.rounded(every).astype(int) - every)
    assert apart[:254].max() == pack.STEP // 2
    assert apart[254:].max() < pack.STEP
    assert set(pack.rounded(every) % pack.STEP) == {0}


def test_results_repeat_the_note_of_packed_data(tmp_path: Path) -> None:
    assert trainings.data_note(tmp_path) == ""
    (tmp_path / trainings.NOTE).write_text("Rounded.\n")
    assert trainings.data_note(tmp_path) == "Rounded."
    found = records(ReproduceSettings(), falling)
    noted = {name: replace(record, data_note="Rounded.") for name, record in found.items()}
    assert staircase.run(ReproduceSettings(), noted).why.endswith("Rounded.")


def test_on_request_only_finished_trainings_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainings, "_run", lambda *_: pytest.fail("trained"))
    settings = ReproduceSettings(quick=True, out=tmp_path, devices="cpu")
    files = runner.reproduce("staircase", settings, finished_only=True)
    assert "not trained" in files[0].read_text()
