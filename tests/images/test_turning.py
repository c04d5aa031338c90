"""Pictures turned once, the right way round, at their own depth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from radialbeams.images import Corners, ImageError, Picture, turn

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
CORNERS = np.array([[RED, GREEN], [BLUE, WHITE]], dtype=np.uint8)
ALL: tuple[Corners, ...] = ("expand", "crop", "same")


def pixels(picture: Image.Image) -> list[list[tuple[int, ...]]]:
    return [[tuple(map(int, pixel)) for pixel in row] for row in np.asarray(picture)]


def noise(width: int, height: int, *channels: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, *channels), np.uint8)


def smooth(size: int = 64) -> np.ndarray:
    y, x = np.mgrid[:size, :size] - (size - 1) / 2
    return np.exp(-((x - 6) ** 2 + (y + 3) ** 2) / 200)


# --- quarters ---


def test_convention_a_quarter_turn_is_counter_clockwise_as_displayed() -> None:
    assert pixels(turn(Image.fromarray(CORNERS), 90)) == [[GREEN, WHITE], [RED, BLUE]]
    assert pixels(turn(Image.fromarray(CORNERS), -90)) == [[BLUE, RED], [WHITE, GREEN]]


@pytest.mark.parametrize("corners", ALL)
@pytest.mark.parametrize(
    ("degrees", "quarters"), [(0, 0), (90, 1), (180, 2), (270, 3), (-90, 3), (450, 1), (-360, 0)]
)
def test_quarter_turns_only_move_pixels(degrees: int, quarters: int, corners: Corners) -> None:
    """For any shape: the canvas' sides swap, since that loses nothing."""
    image = noise(9, 5, 3)
    expected = np.rot90(image, quarters)
    turned = turn(Image.fromarray(image), float(degrees), corners=corners)
    np.testing.assert_array_equal(np.asarray(turned), expected)
    np.testing.assert_array_equal(turn(image, float(degrees), corners=corners), expected)


def test_the_callers_image_is_not_the_result() -> None:
    image = Image.fromarray(CORNERS)
    turn(image, 0).putpixel((0, 0), (1, 2, 3))
    assert pixels(image)[0][0] == RED


# --- between them ---


@pytest.mark.parametrize("degrees", [45.0, 170.5, -33.3])
def test_convention_a_turn_between_quarters_has_the_same_sign(degrees: float) -> None:
    dot = Image.new("L", (41, 41))
    dot.paste(255, (36, 18, 41, 23))  # on the right
    turned = np.asarray(turn(dot, degrees, corners="same")).astype(float)
    y, x = np.mgrid[:41, :41] - 20
    up, right = -(turned * y).sum(), (turned * x).sum()
    assert np.degrees(np.arctan2(up, right)) == pytest.approx(degrees, abs=1)


def test_there_and_back_is_nearly_the_same_picture() -> None:
    picture = Image.fromarray((255 * smooth()).astype(np.uint8))
    back = np.asarray(turn(turn(picture, 37.5), -37.5, corners="same")).astype(float)
    rows, columns = back.shape
    top, left = (rows - 64) // 2, (columns - 64) // 2
    inside = back[top : top + 64, left : left + 64]
    assert np.abs(inside - np.asarray(picture)).mean() < 1


@pytest.mark.parametrize(
    ("corners", "size"), [("expand", (44, 37)), ("crop", (22, 11)), ("same", (40, 20))]
)
def test_the_canvas_of_a_turn_by_thirty_degrees(corners: Corners, size: tuple[int, int]) -> None:
    """40 × 20: expanded 40 cos + 20 sin by 40 sin + 20 cos, 44.6 by 37.3, rounded up."""
    expected = (45, 38) if corners == "expand" else size
    turned = turn(Image.new("RGB", (40, 20)), 30, corners=corners)
    if corners == "crop":  # half the short side over sin and cos
        expected = (math.floor(10 / math.sin(math.pi / 6)), math.floor(10 / math.cos(math.pi / 6)))
    assert turned.size == expected


def test_nothing_is_cut_off_when_the_canvas_grows() -> None:
    white = Image.new("L", (200, 120), 255)
    for degrees in (10.0, 33.3, 45.0, 80.0, 200.0):
        total = np.asarray(turn(white, degrees)).astype(float).sum() / 255
        assert total == pytest.approx(200 * 120, rel=0.01)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.floats(-720, 720))
def test_a_crop_holds_no_corner(width: int, height: int, degrees: float) -> None:
    turned = turn(Image.new("L", (width, height), 255), degrees, corners="crop")
    seen = np.asarray(turned)
    if min(seen.shape) > 1:
        assert seen.min() == 255
    assert seen.shape[0] * seen.shape[1] <= max(1, width * height)


# --- the fill ---


@pytest.mark.parametrize(
    ("mode", "fill", "corner"),
    [
        ("RGB", None, (0, 0, 0)),
        ("RGB", "white", WHITE),
        ("RGB", "#ff8800", (255, 136, 0)),
        ("L", "white", 255),
        ("RGBA", None, (0, 0, 0, 0)),
        ("RGBA", "red", (255, 0, 0, 255)),
        ("LA", None, (0, 0)),
        ("CMYK", "white", (0, 0, 0, 0)),
        ("RGB", "transparent", (0, 0, 0, 0)),
        ("L", "transparent", (0, 0)),
    ],
)
def test_the_corners_have_the_fill(mode: str, fill: str | None, corner: Any) -> None:
    turned = turn(Image.new(mode, (20, 20), "gray"), 45, fill=fill)
    assert turned.getpixel((0, 0)) == corner


def test_colours_under_transparent_pixels_do_not_bleed() -> None:
    """Bicubic on plain channels would mix the hidden black into the white's edge."""
    image = np.zeros((20, 20, 4), np.uint8)
    image[5:15, 5:15] = 255
    for turned in (np.asarray(turn(Image.fromarray(image), 30)), turn(image, 30)):
        assert turned[turned[..., 3] > 8][:, :3].min() >= 250


def test_a_fill_that_is_no_colour_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r'fill must be "transparent" or a colour, .* got \'nope\''
    ):
        turn(Image.new("RGB", (4, 4)), 30, fill="nope")
    with pytest.raises(ImageError, match=r"mode I;16 has no alpha channel\. Use a colour\."):
        turn(Image.new("I;16", (4, 4)), 30, fill="transparent")
    with pytest.raises(ImageError, match=r"without alpha cannot be transparent\. Add alpha"):
        turn(noise(4, 4, 3), 30, fill="transparent")


def test_other_wrong_arguments_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"corners must be restore, expand, crop, same; got 'keep'\."
    ):
        turn(Image.new("RGB", (4, 4)), 30, corners="keep")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"degrees must be a finite number; got nan\."):
        turn(Image.new("RGB", (4, 4)), math.nan)
    with pytest.raises(ImageError, match=r"Expected an array of shape"):
        turn(np.zeros((2, 3, 4, 5), np.uint8), 30)


def test_a_long_strip_is_not_laid_on_a_huge_canvas() -> None:
    strip = Image.new("L", (60_000, 10))
    with pytest.raises(ImageError, match=r"canvas of \d+ × \d+ pixels.* Use --crop or --same"):
        turn(strip, 45)
    assert turn(strip, 45, corners="crop").size == (7, 7)


# --- the same type, the same depth ---


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("channels", [(), (1,), (2,), (3,), (4,)])
def test_an_array_keeps_its_type_and_channels(dtype: Any, channels: tuple[int, ...]) -> None:
    image = noise(31, 17, *channels)
    if channels in ((2,), (4,)):
        image[..., -1] = 255
    scale = {np.uint8: 1, np.uint16: 257}.get(dtype, 1 / 255)
    turned = turn((image.astype(float) * scale).astype(dtype), 20, corners="same")
    assert (turned.dtype, turned.shape) == (dtype, image.shape)
    pillow = np.asarray(
        turn(Image.fromarray(image[..., 0] if channels == (1,) else image), 20, corners="same")
    ).reshape(image.shape)
    inside = np.s_[4:-4, 8:-8]  # beyond the corners, which are as wide as the fill is
    difference = np.abs(turned / scale - pillow.astype(float))[inside]
    assert difference.max() <= 2


def test_sixteen_bits_are_not_squeezed_through_eight() -> None:
    deep = (30_000 + 3 * np.arange(64 * 64)).reshape(64, 64).astype(np.uint16)
    for turned in (
        turn(deep, 10, corners="crop"),
        np.asarray(turn(Image.fromarray(deep), 10, corners="crop")),
    ):
        assert turned.dtype == np.uint16
        assert len(np.unique(turned)) > 1000
        assert abs(int(turned.mean()) - int(deep.mean())) < 40


def test_a_picture_keeps_what_belongs_to_its_file() -> None:
    picture = Picture(Image.fromarray(CORNERS), "JPEG", icc_profile=b"p", dpi=(72, 72))
    turned = turn(picture, 90)
    assert (turned.format, turned.icc_profile, turned.dpi) == ("JPEG", b"p", (72, 72))
    assert pixels(turned.image) == pixels(turn(picture.image, 90))


@pytest.mark.parametrize("mode", ["1", "P", "F", "I"])
def test_every_mode_of_pillow_turns(mode: str) -> None:
    assert turn(Image.new(mode, (8, 8)), 30, corners="same").size == (8, 8)
