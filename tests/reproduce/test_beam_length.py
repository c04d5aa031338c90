"""The plan of `reproduce beam-length`, its canary, and that its verdict follows from figures."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import beams_of

from radialbeams.nn.angles import to_unit
from radialbeams.nn.beams import named_length
from radialbeams.nn.bic import BICConfig
from radialbeams.reproduce import beam_length, beam_length_figures
from radialbeams.reproduce.border_canary import CANARY, canary_loss, read_off_noise, squared
from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.training_record import TrainingRecord
from radialbeams.training.data import ImageSet
from radialbeams.training.fit import Fit
from radialbeams.training.recipe import Recipe


def records(settings: ReproduceSettings, loss: Any) -> dict[str, TrainingRecord]:
    """What the trainings might have left: `loss(kind name)` is the loss of each."""
    found = {}
    for training in beam_length.trainings(settings):
        kind = training.tags["kind"]
        record: Record = {"tags": training.tags, "validations": []}
        if kind.startswith("canary"):
            value = 0.0 if "leakfree" in kind else 0.9
            record["measured"] = {"rho4": [value] * 3, "rho1": [0.0] * 3, "test_views": 4096}
        else:
            value = loss(kind) + 0.001 * training.recipe.seed
            figures = {"circle_loss": value, "paper_equivalent": 30 * value, "mean": 20 * value}
            record["measured"] = {"so2": figures, "other_padding": {**figures, "mean": 70.0}}
            point = {"circle_loss": value, "mean": 1.0, "median": 1.0}
            record["validations"] = [{"step": step, "so2": point} for step in (1, 2)]
        found[training.name] = TrainingRecord(**record)
    return found


def border_is_read(kind: str) -> float:
    return 0.1 if "C-zeros" in kind or "B-zeros" in kind else 0.5


def border_is_not_read(kind: str) -> float:
    return 0.5 if "-A-" in kind else 0.1


@pytest.fixture
def without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """The drawing of any picture will do, and any figures of the pretrained models."""
    pixels = torch.randint(256, (1, 3, 64, 64), dtype=torch.uint8)
    drawn = beam_length.pictures_of(pixels)
    monkeypatch.setattr(beam_length, "drawing", lambda settings: drawn)
    edges = {"zeros": 33.0, "corner": 4.0}
    monkeypatch.setattr(beam_length, "border", lambda data, settings: edges)
    swapped = {"zeros": {"mean": 0.5}, "corner": {"mean": 20.0}}
    monkeypatch.setattr(beam_length, "swapped_pretrained", lambda data, settings: swapped)


# --- the plan ---


def test_every_length_on_both_sets_and_both_paddings_where_there_is_padding() -> None:
    planned = [t for t in beam_length.trainings(ReproduceSettings()) if t.parts is not CANARY]
    seeds = Counter(t.tags["kind"] for t in planned)
    for data, count in (("coil100", 3), ("lfw", 2)):
        kinds = ("A-zeros", "B-zeros", "B-corner", "C-zeros", "C-corner")
        assert {k: n for k, n in seeds.items() if k.startswith(data)} == {
            f"{data}-{kind}": count for kind in kinds
        }
    for training in planned:
        model, size = training.recipe.model, training.recipe.parent_size
        letter = training.tags["kind"].split("-")[1]
        assert beams_of(model).beam_length == named_length(letter, size)
        assert size == {"coil100": 128, "lfw": 250}[training.recipe.data]
    assert len(beam_length.trainings(ReproduceSettings())) == 29


# --- the canary ---


@pytest.mark.parametrize("angle", [0.3, 2.0, 5.5])
def test_squaring_twice_gives_four_times_the_angle(angle: float) -> None:
    unit = to_unit(torch.tensor([angle]))
    fourth = squared(squared(unit))
    assert torch.allclose(fourth, to_unit(torch.tensor([4 * angle])), atol=1e-5)


def canary_fit(folder: Path, length: str, steps: int) -> tuple[Fit, Recipe]:
    model = BICConfig.for_images(
        28, beam_length=named_length(length, 28), num_beams=16, latent=32, lstm_layers=1
    )
    recipe = Recipe("any", model, 28, batch=32, steps=steps, learning_rate=4e-3, clip=1.0)
    recipe = replace(recipe, schedule="one-cycle")
    images = ImageSet(
        "any",
        torch.zeros(400, 3, 28, 28, dtype=torch.uint8),
        tuple(map(str, range(400))),
        ("",) * 400,
    )
    return Fit(recipe, images, folder, device=torch.device("cpu"), parts=CANARY), recipe


def test_a_canary_sees_noise_and_nothing_of_the_images(tmp_path: Path) -> None:
    fit, _ = canary_fit(tmp_path / "one", "C", 1)
    assert fit.step().loss is canary_loss
    assert fit.images.images.float().std() > 60
    again, _ = canary_fit(tmp_path / "two", "C", 1)
    assert torch.equal(fit.images.images, again.images.images)  # a resumed one sees the same


def test_a_canary_reads_the_black_border_off_noise(tmp_path: Path) -> None:
    from radialbeams.reproduce.trainings import Trained

    fit, recipe = canary_fit(tmp_path, "C", 150)
    fit.run()
    trained = Trained(recipe, fit, fit.averaged(), fit.images, torch.device("cpu"))
    found = read_off_noise(trained)
    assert found["rho4"][0] > 0.5
    assert abs(found["rho1"][0]) < 0.2  # a square cannot tell more than that


# --- the verdict ---


@pytest.mark.usefixtures("without_data")
def test_the_answer_follows_from_the_losses() -> None:
    read = beam_length.run(ReproduceSettings(), records(ReproduceSettings(), border_is_read))
    assert "C is better than A (3.0° against 15.0°)" in read.why
    assert "C on adaptive padding is worse than C on black" in read.why
    assert (
        read.ours["beam length with the lowest loss, COIL-100"] == "B, not clearly different from C"
    )
    assert "2.0° → 70.0°" in read.ours["mean error of length C, black → adaptive padding, COIL-100"]
    assert read.ours["ρ₄ of the network on white noise, leak-free views"] == 0
    assert "Lengths that leak: A, B, C" in read.why
    assert "the pretrained bic.lfw (length B) has 20.0° instead of 0.5°" in read.why
    innocent = beam_length.run(
        ReproduceSettings(), records(ReproduceSettings(), border_is_not_read)
    )
    assert "C on adaptive padding does not clearly differ (a difference below " in innocent.why


@pytest.mark.usefixtures("without_data")
def test_the_figures_need_nothing_but_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from radialbeams.reproduce import figures

    settings = ReproduceSettings(quick=True)
    finding = beam_length.run(settings, records(settings, border_is_read))
    assert finding.why.startswith(QUICK)
    assert [leak["rendering"] for leak in finding.data["measured_leaks"]].count("bilinear") == 2
    found = json.loads(json.dumps({"data": finding.data}))
    with figures.style():
        drawn = beam_length.draw(found)
        assert set(drawn) == {"", "leak"}
        for suffix, figure in drawn.items():
            figures.save(figure, tmp_path / f"length{suffix}", quick=True)
        # Where nothing was measured before there is nothing to cite.
        monkeypatch.setattr(beam_length, "LEAKS", tmp_path)
        assert beam_length.measured_leaks() == []
        found["data"]["measured_leaks"] = []
        assert len(beam_length_figures.draw_leak(found["data"]).axes) == 1


def test_the_adaptive_padding_has_the_colour_of_the_corner() -> None:
    from radialbeams.reproduce.thumbnails import decode

    pixels = torch.full((1, 3, 16, 16), 40, dtype=torch.uint8)
    drawn = beam_length.pictures_of(pixels)
    assert decode(drawn["corner"]).min() == decode(drawn["corner"]).max() == 40
    assert decode(drawn["zeros"]).min() == 0


def test_the_step_at_the_border_is_what_the_padding_leaves_of_it() -> None:
    pixels = torch.full((2, 3, 16, 16), 40, dtype=torch.uint8)
    assert beam_length.edge_step(pixels, "zeros") == 40
    assert beam_length.edge_step(pixels, "corner") == 0
    pixels[..., -1, :] = 80  # one edge of four, and the ends of two more
    assert beam_length.edge_step(pixels, "corner") == pytest.approx(40 / 4 + 2 * 40 / 64, abs=0.1)
