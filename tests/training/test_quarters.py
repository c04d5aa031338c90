"""The quarter network: its symmetry, its view, its training and its export."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from radialbeams.images.page import close_views, content_box, page_view
from radialbeams.nn.quarter import (
    QuarterConfig,
    QuarterNetwork,
    four_turns,
    quarter_loss,
    standardized,
)
from radialbeams.training.data.documents.pool import DOCUMENT, HAS_UP, PHOTO, READY, create_pool
from radialbeams.training.quarter_export import export_quarter_network, load_quarter_network
from radialbeams.training.quarter_report import calibration_error, fit_temperature
from radialbeams.training.quarter_views import page_views
from radialbeams.training.quarters import (
    QuarterFit,
    QuarterRecipe,
    losses_of,
)

SMALL = QuarterConfig(size=32, stem=4, widths=(8, 8), blocks=(1, 0), hidden=8)


@pytest.fixture
def network() -> QuarterNetwork:
    torch.manual_seed(0)
    return QuarterNetwork(SMALL).eval()


def test_a_quarter_turn_of_the_page_rolls_the_scores(network: QuarterNetwork) -> None:
    pages = torch.rand(3, 1, 32, 32)
    quarters, document = network(pages)
    turned, same = network(torch.rot90(pages, 1, (2, 3)))  # counter-clockwise
    torch.testing.assert_close(turned, quarters.roll(-1, 1))
    torch.testing.assert_close(same, document)


def test_the_turns_are_counter_clockwise() -> None:
    pages = torch.rand(2, 1, 5, 5)
    views = four_turns(pages).unflatten(0, (4, 2))
    for turns in range(4):
        assert torch.equal(views[turns], torch.rot90(pages, turns, (2, 3)))


def test_contrast_and_brightness_are_taken_out_and_a_blank_page_stays_blank() -> None:
    pages = torch.rand(1, 1, 16, 16)
    torch.testing.assert_close(
        standardized(pages), standardized(0.9 * pages + 0.1), atol=0.06, rtol=0.05
    )
    assert standardized(torch.full((1, 1, 8, 8), 0.7)).abs().max() < 1e-3


def test_a_page_without_up_is_best_answered_by_even_scores() -> None:
    even, sure = torch.zeros(1, 4), torch.tensor([[9.0, 0, 0, 0]])
    turns, yes, no = torch.tensor([0]), torch.tensor([True]), torch.tensor([False])
    logit = torch.zeros(1)
    assert (
        quarter_loss(even, logit, turns, no, yes)[0] < quarter_loss(sure, logit, turns, no, yes)[0]
    )
    assert (
        quarter_loss(sure, logit, turns, yes, yes)[0]
        < quarter_loss(even, logit, turns, yes, yes)[0]
    )


def test_photos_train_only_the_answer_document() -> None:
    quarters = torch.randn(2, 4, requires_grad=True)
    document = torch.zeros(2, requires_grad=True)
    marks = torch.tensor([[READY | HAS_UP | PHOTO, 4, 1, 0], [READY | HAS_UP | DOCUMENT, 0, 2, 1]])
    turn, kind = losses_of(quarters, document, marks)
    (turn + kind).backward()
    assert quarters.grad is not None and document.grad is not None
    assert not quarters.grad[0].any() and quarters.grad[1].any()
    assert document.grad[0] > 0 > document.grad[1]


def test_the_view_of_a_page_turns_with_the_page() -> None:
    rng = np.random.default_rng(0)
    pixels = np.full((240, 160), 255, np.uint8)
    pixels[30:210, 20:140] = rng.integers(0, 255, (180, 120))
    page = Image.fromarray(pixels)
    upright = page_view(page, 96).astype(int)
    across = page_view(page.transpose(Image.Transpose.ROTATE_90), 96).astype(int)
    assert np.abs(np.rot90(upright) - across).mean() < 1


def test_margins_are_cut_and_an_empty_page_is_kept() -> None:
    page = Image.new("L", (400, 400), 255)
    page.paste(0, (100, 50, 300, 350))
    left, top, right, bottom = content_box(page)
    assert 85 < left < 100 and 300 < right < 315
    assert 35 < top < 50 and 350 < bottom < 365
    assert content_box(Image.new("L", (300, 200), 7)) == (0, 0, 300, 200)


def text_page(size: tuple[int, int]) -> Image.Image:
    """Dark strokes on white in the middle of a page."""
    pixels = np.full((size[1], size[0]), 255, np.uint8)
    noise = np.random.default_rng(0).integers(0, 2, pixels.shape, np.uint8) * 255
    part = slice(size[1] // 8, size[1] * 7 // 8, 4), slice(size[0] // 8, size[0] * 7 // 8)
    pixels[part] = noise[part]
    return Image.fromarray(pixels)


def test_the_frame_of_a_page_that_was_turned_and_levelled_is_cut_away() -> None:
    page = text_page((300, 400))
    framed = Image.new("L", (900, 800), 0)
    framed.paste(page, (250, 150))
    alone, within = content_box(page), content_box(framed)
    assert np.abs(np.subtract(within, alone) - (250, 150, 250, 150)).max() < 12


def test_close_views_show_the_places_with_the_most_detail_and_turn_with_the_page() -> None:
    page = Image.new("L", (600, 800), 255)
    page.paste(text_page((300, 300)), (300, 500))
    page.paste(Image.new("L", (40, 10), 0), (20, 20))
    (view,) = close_views(page, 96, 1)
    assert (view[30:66, 30:66] < 250).mean() > 0.6
    (turned,) = close_views(page.transpose(Image.Transpose.ROTATE_90), 96, 1)
    assert np.abs(np.rot90(view).astype(int) - turned).mean() < 12
    assert next(close_views(Image.new("L", (50, 40), 9), 32, 2)).shape == (32, 32)


def test_a_strip_is_shown_where_it_has_the_most_detail_and_turns_with_the_page() -> None:
    strip = Image.new("L", (1500, 150), 255)
    strip.paste(text_page((280, 140)), (5, 5))  # far from the middle
    strip.paste(text_page((60, 60)), (1430, 40))
    view = page_view(strip, 96)
    assert (view < 250).mean() > 0.03
    turned = page_view(strip.transpose(Image.Transpose.ROTATE_90), 96)
    assert np.abs(np.rot90(view).astype(int) - turned).mean() < 6


def test_a_short_strip_is_shown_whole() -> None:
    strip = Image.new("L", (500, 80), 255)
    for left in (0, 430):
        strip.paste(text_page((70, 70)), (left, 5))
    view = page_view(strip, 96)
    assert min((view[:, :30] < 250).mean(), (view[:, -30:] < 250).mean()) > 0.02


@pytest.mark.parametrize("size", [(1, 1), (3, 500), (900, 40), (64, 64)])
def test_pages_of_any_shape_have_a_view(size: tuple[int, int]) -> None:
    assert page_view(Image.effect_noise(size, 60), 64).shape == (64, 64)


def test_views_without_strength_only_scale_and_others_differ() -> None:
    pages = torch.randint(0, 255, (2, 48, 48), dtype=torch.uint8)
    generator = torch.Generator().manual_seed(0)
    plain = page_views(pages, 48, generator, strength=0)
    torch.testing.assert_close(plain[:, 0], pages / 255)
    varied = page_views(pages, 32, generator)
    assert varied.shape == (2, 1, 32, 32)
    assert varied.min() >= 0 and varied.max() <= 1


def test_temperature_makes_overconfident_scores_honest() -> None:
    torch.manual_seed(0)
    right = torch.rand(4000) < 0.8
    quarters = torch.zeros(4000, 4)
    quarters[torch.arange(4000), torch.where(right, 0, 1)] = 10.0
    marks = torch.full((4000, 4), READY | HAS_UP | DOCUMENT, dtype=torch.uint8)
    temperature = fit_temperature(quarters, marks)
    chances = (quarters / temperature).softmax(1).max(1).values.numpy()
    assert calibration_error(chances, right.numpy()) < 0.03
    assert calibration_error(quarters.softmax(1).max(1).values.numpy(), right.numpy()) > 0.15


def arrow_pool(folder: Path) -> None:
    """Pages whose up is easy: dark above, light below, in noise."""
    pool = create_pool(folder, 96, 40, seed=0)
    rng = np.random.default_rng(0)
    pool.pages[:] = rng.integers(90, 160, pool.pages.shape)
    pool.pages[:, :20] //= 2
    pool.marks[:] = (READY | HAS_UP | DOCUMENT, 0, 2, 1)


@pytest.mark.long
def test_training_learns_resumes_and_its_export_agrees(tmp_path: Path) -> None:
    arrow_pool(tmp_path / "pool")
    recipe = QuarterRecipe(model=SMALL, batch=16, steps=60, held_out=16, learning_rate=3e-3)
    run, cpu = tmp_path / "run", torch.device("cpu")
    fit = QuarterFit(recipe, tmp_path / "pool", run, device=cpu, log_every=20, least_pages=32)
    card = fit.run()
    assert card.held_out["right"] == 1.0
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert lines[0]["step"] == 20
    again = QuarterFit(recipe, tmp_path / "pool", run, device=cpu)
    assert again.at.step == 60
    model = load_quarter_network(run / "model")
    assert float(model.temperature) == pytest.approx(card.temperature)
    assert export_quarter_network(model, tmp_path / "quarter.onnx") < 1e-3
    start = run / "model.safetensors"
    later = QuarterFit(recipe, tmp_path / "pool", tmp_path / "later", device=cpu, start=start)
    assert float(later.model.temperature) == 1.0  # fitted anew at its end
    assert later.started_from == card.sha256["safetensors"]
    expected, got = model.scorer.state_dict(), later.model.scorer.state_dict()
    assert all(torch.equal(got[name], value) for name, value in expected.items())
    other = QuarterRecipe(model=QuarterConfig(size=32, stem=4, widths=(8, 12), blocks=(1, 0)))
    with pytest.raises(ValueError, match="same shape"):
        QuarterFit(other, tmp_path / "pool", tmp_path / "other", device=cpu, start=start)


def test_a_size_that_the_stages_cannot_halve_is_refused() -> None:
    with pytest.raises(ValueError, match="multiple of 32"):
        QuarterConfig(size=100)
