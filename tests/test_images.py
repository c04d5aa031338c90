"""Pictures in: as they are meant to be seen. Pictures out: turned once, the right way round."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from radialbeams.images import centre_square, open_rgb, paper_view, turn

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
CORNERS = np.array([[RED, GREEN], [BLUE, WHITE]], dtype=np.uint8)


def pixels(picture: Image.Image) -> list[list[tuple[int, ...]]]:
    return [[tuple(map(int, pixel)) for pixel in row] for row in np.asarray(picture)]


def one_pixel(picture: Image.Image) -> tuple[int, ...]:
    opened = open_rgb(picture)
    assert opened.mode == "RGB"
    return pixels(opened)[0][0]


# --- in ---


@pytest.mark.parametrize(
    ("orientation", "seen"),
    [
        (1, [[RED, GREEN], [BLUE, WHITE]]),
        (2, [[GREEN, RED], [WHITE, BLUE]]),
        (3, [[WHITE, BLUE], [GREEN, RED]]),
        (6, [[BLUE, RED], [WHITE, GREEN]]),  # the camera lay on its side
        (8, [[GREEN, WHITE], [RED, BLUE]]),
    ],
)
def test_the_exif_orientation_is_applied(
    tmp_path: Path, orientation: int, seen: list[list[tuple[int, ...]]]
) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(CORNERS).save(tmp_path / "turned.png", exif=exif)
    assert pixels(open_rgb(tmp_path / "turned.png")) == seen
    assert pixels(open_rgb(str(tmp_path / "turned.png"))) == seen
    assert pixels(open_rgb(Image.open(tmp_path / "turned.png"))) == seen


def test_what_is_transparent_is_black() -> None:
    assert one_pixel(Image.new("RGBA", (1, 1), (200, 100, 50, 0))) == (0, 0, 0)
    assert one_pixel(Image.new("RGBA", (1, 1), (200, 100, 50, 255))) == (200, 100, 50)
    half = one_pixel(Image.new("RGBA", (1, 1), (200, 100, 50, 128)))
    np.testing.assert_allclose(half, (100, 50, 25), atol=1)
    assert one_pixel(Image.new("LA", (1, 1), (200, 0))) == (0, 0, 0)


def test_a_palette_is_looked_up() -> None:
    assert pixels(open_rgb(Image.fromarray(CORNERS).quantize(4))) == pixels(
        Image.fromarray(CORNERS)
    )


def test_a_transparent_colour_of_a_palette_is_black(tmp_path: Path) -> None:
    picture = Image.new("P", (2, 1))
    picture.putpalette([9, 9, 9, *RED])
    picture.putpixel((1, 0), 1)
    picture.save(tmp_path / "clear.png", transparency=1)
    assert pixels(open_rgb(tmp_path / "clear.png")) == [[(9, 9, 9), (0, 0, 0)]]


def test_gray_becomes_three_equal_channels() -> None:
    assert one_pixel(Image.new("L", (1, 1), 77)) == (77, 77, 77)
    assert one_pixel(Image.new("1", (1, 1), 1)) == (255, 255, 255)


def test_printers_inks_become_light() -> None:
    assert one_pixel(Image.new("CMYK", (1, 1), (0, 255, 255, 0))) == RED
    assert one_pixel(Image.new("CMYK", (1, 1), (0, 0, 0, 255))) == (0, 0, 0)


@pytest.mark.parametrize(("value", "seen"), [(0, 0), (25700, 100), (32896, 128), (65535, 255)])
def test_sixteen_bits_are_scaled_and_not_clipped(tmp_path: Path, value: int, seen: int) -> None:
    Image.fromarray(np.full((1, 1), value, np.uint16)).save(tmp_path / "deep.png")
    assert one_pixel(Image.open(tmp_path / "deep.png")) == (seen, seen, seen)


def test_the_callers_picture_is_left_alone() -> None:
    picture = Image.fromarray(CORNERS)
    opened = open_rgb(picture)
    opened.putpixel((0, 0), (1, 2, 3))
    assert pixels(picture)[0][0] == RED


def test_a_file_that_is_no_picture_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_text("no picture")
    with pytest.raises(OSError, match=r"x\.png"):
        open_rgb(tmp_path / "x.png")


# --- the view ---


def test_the_centred_square_is_cut_from_the_longer_side() -> None:
    wide = np.arange(12, dtype=np.uint8).reshape(2, 6)
    assert np.asarray(centre_square(Image.fromarray(wide))).tolist() == [[2, 3], [8, 9]]
    assert np.asarray(centre_square(Image.fromarray(wide.T.copy()))).tolist() == [[2, 8], [3, 9]]
    square = Image.fromarray(CORNERS)
    assert pixels(centre_square(square)) == pixels(square)


@pytest.mark.parametrize("size", [(40, 40), (97, 40), (3, 500), (1, 1)])
def test_a_view_is_float_channels_in_the_unit_interval(size: tuple[int, int]) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (*size[::-1], 3), np.uint8)
    view = paper_view(Image.fromarray(noise), 40)
    assert view.shape == (3, 40, 40) and view.dtype == np.float32
    assert view.min() >= 0 and view.max() <= 1


def test_a_view_of_its_own_size_is_not_resampled() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)
    view = paper_view(Image.fromarray(noise), 40)
    np.testing.assert_array_equal(view, noise.transpose(2, 0, 1).astype(np.float32) / 255)


# --- out ---


def test_convention_a_quarter_turn_is_counter_clockwise_as_displayed() -> None:
    assert pixels(turn(Image.fromarray(CORNERS), 90)) == [[GREEN, WHITE], [RED, BLUE]]
    assert pixels(turn(Image.fromarray(CORNERS), -90)) == [[BLUE, RED], [WHITE, GREEN]]


@pytest.mark.parametrize(("degrees", "quarters"), [(90, 1), (180, 2), (270, 3), (-90, 3), (450, 1)])
def test_quarter_turns_only_move_pixels(degrees: int, quarters: int) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (9, 9, 3), np.uint8)
    turned = np.asarray(turn(Image.fromarray(noise), float(degrees)))
    np.testing.assert_array_equal(turned, np.rot90(noise, quarters))


def test_no_turn_changes_nothing() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (5, 9, 3), np.uint8)
    for degrees in (0.0, 360.0, -360.0):
        np.testing.assert_array_equal(np.asarray(turn(Image.fromarray(noise), degrees)), noise)


def test_half_a_turn_is_exact_for_any_shape() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (4, 7, 3), np.uint8)
    turned = np.asarray(turn(Image.fromarray(noise), 180))
    np.testing.assert_array_equal(turned, noise[::-1, ::-1])


@pytest.mark.parametrize("degrees", [90.0, 33.3, -120.5])
def test_the_canvas_keeps_its_shape(degrees: float) -> None:
    assert turn(Image.new("RGB", (31, 17)), degrees).size == (31, 17)


def test_a_turn_between_quarters_has_the_same_sign() -> None:
    dot = Image.new("L", (41, 41))
    dot.paste(255, (36, 18, 41, 23))  # on the right
    turned = np.asarray(turn(dot, 45)).astype(float)
    y, x = np.mgrid[:41, :41] - 20
    up, right = -(turned * y).sum(), (turned * x).sum()
    assert np.degrees(np.arctan2(up, right)) == pytest.approx(45, abs=1)


def test_there_and_back_is_nearly_the_same_picture() -> None:
    y, x = np.mgrid[:64, :64] - 31.5
    smooth = 255 * np.exp(-((x - 6) ** 2 + (y + 3) ** 2) / 200)
    picture = Image.fromarray(smooth.astype(np.uint8))
    back = np.asarray(turn(turn(picture, 37.5), -37.5)).astype(float)
    inside = x**2 + y**2 < 28**2
    assert np.abs(back - np.asarray(picture))[inside].mean() < 1.5
