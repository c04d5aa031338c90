"""Corners that were filled when a picture was turned are noticed; plain backgrounds stay."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

from radialbeams.cards import ViewProtocol
from radialbeams.demo import PICTURES
from radialbeams.images import read, read_small, turn, view
from radialbeams.images.corners import _filled, picture_share, without_corners

PROTOCOL = ViewProtocol("leakfree", 128)


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    return read(PICTURES / "astronaut.webp").image


def shape_on(background: str, kind: str) -> Image.Image:
    """A thing on a plain background, as in a catalogue."""
    picture = Image.new("RGB", (200, 200), background)
    pen = ImageDraw.Draw(picture)
    boxes = {
        "disc": (30, 30, 170, 170),
        "touching": (0, 0, 199, 199),
        "upright": (30, 50, 170, 150),
    }
    if kind in ("disc", "touching"):
        pen.ellipse(boxes[kind], fill="tomato")
    elif kind == "upright":
        pen.rectangle(boxes[kind], fill="tomato")
    elif kind == "star":
        pen.regular_polygon((100, 100, 99), 3, fill="tomato")
    return picture


@pytest.mark.parametrize("degrees", [12.0, 30.0, 45.0, 71.0, 200.0])
@pytest.mark.parametrize("fill", ["black", "white", "#3366aa", "transparent"])
@pytest.mark.parametrize("size", [(200, 200), (240, 160)])
def test_the_corners_of_a_turned_photo_are_found(
    photo: Image.Image, degrees: float, fill: str, size: tuple[int, int]
) -> None:
    upright = photo.resize(size)
    turned = read_small(turn(upright, degrees, fill=fill), 128)
    share = picture_share(turned)
    assert share is not None
    assert share * min(turned.size) == pytest.approx(min(size), rel=0.05)


@pytest.mark.parametrize("degrees", [12.0, 45.0, 71.0, 200.0])
def test_transparent_corners_are_found_whatever_the_picture_holds(degrees: float) -> None:
    """A black photo laid on black would be nothing; its alpha says where it lies."""
    turned = read_small(turn(Image.new("RGB", (240, 160)), degrees, fill="transparent"), 128)
    share = picture_share(turned)
    assert share is not None
    assert share * min(turned.size) == pytest.approx(160, rel=0.05)


def test_a_thing_cut_out_stays_whole() -> None:
    clear = Image.new("RGBA", (200, 200))
    ImageDraw.Draw(clear).ellipse((0, 0, 199, 199), fill="tomato")
    assert without_corners(clear) is clear
    assert picture_share(Image.new("RGBA", (200, 200))) is None


def test_filled_corners_are_found_in_a_picture_with_alpha_too(photo: Image.Image) -> None:
    turned = turn(photo, 30, fill="white").convert("RGBA")
    assert picture_share(turned) == picture_share(turned.convert("RGB")) is not None


@pytest.mark.parametrize("degrees", [12.0, 30.0, 45.0, 71.0])
@pytest.mark.parametrize("size", [(200, 200), (240, 160)])
def test_they_are_found_beside_a_strip_of_their_own_colour(
    photo: Image.Image, degrees: float, size: tuple[int, int]
) -> None:
    """As in a photo that was padded with black before it was turned on black."""
    upright = photo.resize(size)
    upright.paste("black", (0, 0, 24, size[1]))
    turned = read_small(turn(upright, degrees), 128)
    share = picture_share(turned)
    if size[0] != size[1] and degrees == 45.0:
        assert share is None  # the canvas of a strip turned by 45° does not say how wide it is
    else:
        assert share is not None
        assert share * min(turned.size) == pytest.approx(min(size), rel=0.05)


@pytest.mark.parametrize("degrees", [10.0, 30.0, 45.0])
def test_a_tilted_thing_in_the_middle_stays_whole(degrees: float) -> None:
    thing = turn(Image.new("RGB", (110, 70), "tomato"), degrees, fill="white")
    picture = Image.new("RGB", (200, 200), "white")
    picture.paste(thing, (10, 60))
    assert picture_share(picture) is None


def test_they_are_found_after_jpeg(photo: Image.Image) -> None:
    stream = io.BytesIO()
    turn(photo, 30, fill="white").save(stream, "JPEG", quality=80)
    assert picture_share(read_small(stream.getvalue(), 64)) is not None


def test_the_view_of_a_turned_photo_is_that_of_the_photo(photo: Image.Image) -> None:
    turned = turn(photo.filter(ImageFilter.GaussianBlur(2)), 30, fill="white")
    seen = view(turned, PROTOCOL, 57, 3)
    expected = view(photo.filter(ImageFilter.GaussianBlur(2)), PROTOCOL, 57, 3, 30.0)
    assert np.abs(seen - expected).mean() < 0.03


@pytest.mark.parametrize("degrees", [5.0, 30.0, 45.0, 130.0])
def test_a_photo_turned_on_its_own_canvas_needs_nothing(photo: Image.Image, degrees: float) -> None:
    """Its corners never reach the disc that a model sees."""
    turned = turn(photo, degrees, corners="same", fill="white")
    assert without_corners(turned) is turned
    y, x = np.mgrid[: turned.height, : turned.width] - (turned.height - 1) / 2
    mask = turn(Image.new("L", photo.size, 255), degrees, corners="same")
    assert np.asarray(mask)[x**2 + y**2 < (0.9 * turned.width / 2) ** 2].min() == 255


@pytest.mark.parametrize("background", ["black", "white", "#3366aa"])
@pytest.mark.parametrize("kind", ["disc", "touching", "upright", "star", "nothing"])
def test_a_thing_on_a_plain_background_stays_whole(background: str, kind: str) -> None:
    assert picture_share(shape_on(background, kind)) is None


def test_a_photo_stays_whole(photo: Image.Image) -> None:
    assert without_corners(photo) is photo


def test_a_night_sky_stays_whole() -> None:
    rng = np.random.default_rng(0)
    sky = rng.integers(0, 12, (150, 200, 3), np.uint8)
    sky[rng.integers(0, 150, 90), rng.integers(0, 200, 90)] = 255
    sky[110:] = rng.integers(0, 60, (40, 200, 3), np.uint8)
    assert picture_share(Image.fromarray(sky)) is None


@pytest.mark.parametrize("size", [(1, 1), (3, 500), (15, 15), (16, 16)])
def test_tiny_pictures_are_left_alone(size: tuple[int, int]) -> None:
    assert picture_share(Image.new("RGB", size)) is None


def test_the_papers_views_keep_their_corners(photo: Image.Image) -> None:
    """There the padding around the picture is part of the view."""
    turned = turn(photo, 30, fill="white")
    assert view(turned, ViewProtocol("paper"), 64, 3)[:, 0, 0].min() > 0.99


def test_a_pixel_is_filled_if_its_colour_reaches_two_sides_unbroken() -> None:
    random = np.random.default_rng(0)
    for share in (0.5, 0.9, 0.99, 1.0):
        like = random.random((23, 31)) < share
        for y, x in np.ndindex(like.shape):
            across = like[y, : x + 1].all() or like[y, x:].all()
            down = like[: y + 1, x].all() or like[y:, x].all()
            assert _filled(like)[y, x] == (across and down)
