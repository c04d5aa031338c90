"""Skew from lines: on rendered text, with counter-tests on noise."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from radialbeams.images.levelling import SIDE, WEAK, WIDTH, Levelling, measure_skew, spectrum


def text_page(seed: int) -> Image.Image:
    """Ragged lines of words in the middle of a white page."""
    rng = np.random.default_rng(seed)
    page = Image.new("L", (700, 900), 255)
    draw = ImageDraw.Draw(page)
    font = ImageFont.load_default(int(rng.integers(9, 16)))
    letters = list("abcdefghijklmnopqrstuvwxyz     ")
    for y in range(120, 780, int(rng.integers(16, 26))):
        count = int(rng.integers(20, 70))
        draw.text((110, y), "".join(rng.choice(letters, count)), font=font, fill=20)
    return page


def turned(page: Image.Image, degrees: float) -> Image.Image:
    """Counter-clockwise; the white fill leaves no edge that could be measured instead of text."""
    return page.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=255)


@pytest.mark.parametrize("skew", [-9.7, -3.3, -0.4, 0.0, 1.1, 6.2, 10.0])
def test_the_skew_of_text_is_found_within_three_tenths_of_a_degree(skew: float) -> None:
    for seed in range(3):
        found = measure_skew(turned(text_page(seed), skew))
        assert abs(found.skew_degrees - skew) < 0.3
        assert found.has_evidence


@pytest.mark.parametrize("quarter", [90, 180, 270])
def test_a_quarter_turn_leaves_the_skew_as_it_is(quarter: int) -> None:
    page = turned(text_page(1), 4.0).rotate(quarter, expand=True)
    assert abs(measure_skew(page).skew_degrees - 4.0) < 0.3


@pytest.mark.parametrize("degrees", [-30, 0, 7, 44, 46, 80, 93, 133, 137, 184])
def test_convention_lines_are_horizontal_or_vertical_once_the_page_is_levelled(
    degrees: int,
) -> None:
    found = measure_skew(turned(text_page(4), degrees))
    quarters = round((degrees - found.skew_degrees) / 90)
    assert abs(degrees - 90 * quarters - found.skew_degrees) < 0.3
    assert found.horizontal == (quarters % 2 == 0)


def test_the_spectrum_is_the_left_part_of_the_whole_transform() -> None:
    page = text_page(5)
    detail = np.zeros((SIDE, SIDE), np.float32)
    detail[100:500, 30:600] = np.asarray(page.resize((570, 400)), np.float32)
    whole = np.abs(np.fft.rfft2(detail))
    np.testing.assert_allclose(spectrum(detail[:500]), whole[:, :WIDTH], rtol=1e-3, atol=2)


def test_turning_clockwise_by_the_skew_levels_the_page() -> None:
    page = turned(text_page(2), 7.0)
    level = page.rotate(-measure_skew(page).skew_degrees, Image.Resampling.BICUBIC, fillcolor=255)
    assert abs(measure_skew(level).skew_degrees) < 0.3


def test_the_search_keeps_to_the_requested_range() -> None:
    page = turned(text_page(3), 30.0)
    assert abs(measure_skew(page, around_degrees=28, within_degrees=5).skew_degrees - 30) < 0.3
    assert abs(measure_skew(page, around_degrees=-5, within_degrees=5).skew_degrees) < 11


def test_the_border_of_the_image_is_no_line() -> None:
    rng = np.random.default_rng(0)
    noise = Image.fromarray(rng.integers(0, 255, (40, 60), dtype=np.uint8))
    smooth = noise.resize((600, 400), Image.Resampling.BICUBIC)
    assert not measure_skew(smooth).has_evidence


@pytest.mark.parametrize("level", [0, 128, 255])
def test_a_blank_page_has_no_evidence(level: int) -> None:
    assert not measure_skew(Image.new("L", (300, 400), level)).has_evidence


def test_noise_has_no_evidence_and_lines_on_it_have() -> None:
    rng = np.random.default_rng(1)
    noise = Image.fromarray(rng.integers(90, 160, (500, 500), dtype=np.uint8))
    assert not measure_skew(noise).has_evidence
    draw = ImageDraw.Draw(noise)
    for y in range(60, 440, 30):
        draw.line((60, y, 440, y + 20), fill=0, width=2)
    found = measure_skew(noise)
    assert found.has_evidence
    assert abs(found.skew_degrees + np.degrees(np.arctan2(20, 380))) < 0.3


def test_tiny_images_are_answered() -> None:
    assert not measure_skew(Image.new("L", (1, 1), 0)).has_evidence
    assert not measure_skew(Image.new("RGB", (3, 2), (9, 9, 9))).has_evidence


def test_a_range_beyond_half_a_quarter_is_refused() -> None:
    with pytest.raises(ValueError, match="up to 45"):
        measure_skew(Image.new("L", (10, 10)), within_degrees=60)


def small_screen(stroke: int) -> Image.Image:
    """Level words and strokes that slant by 4.5°, in this gray on a dark ground."""
    screen = Image.new("L", (200, 160), 20)
    draw = ImageDraw.Draw(screen)
    draw.text((60, 30), "load 36 %", fill=230, font=ImageFont.load_default(18))
    for x in range(50, 130, 6):
        draw.line((x, 140, x + 7, 50), fill=stroke)
    return screen


def test_level_lines_win_over_slanted_strokes_of_a_small_screen() -> None:
    found = measure_skew(small_screen(60))
    assert found.strength < WEAK
    assert abs(found.skew_degrees) < 0.3
    assert abs(measure_skew(small_screen(150)).skew_degrees + 4.5) < 0.3  # where they are strong


def test_weak_evidence_counts_only_for_level_lines() -> None:
    assert Levelling(0.1, 10.0).has_evidence
    assert not Levelling(7.0, 10.0).has_evidence
    assert Levelling(7.0, 20.0).has_evidence
