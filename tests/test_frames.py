"""Frames: the rectangle of a picture that lies turned on a plain canvas, and nothing else."""

from __future__ import annotations

import io
from functools import cache

import numpy as np
import pytest
from PIL import Image, ImageDraw

from radialbeams.demo import PICTURES
from radialbeams.images import Frame, frame_of, has_plain_ground, turn


@cache
def photo(width: int = 480, height: int = 320) -> Image.Image:
    """Picture up to every edge, in no colour that corners are filled with."""
    with Image.open(PICTURES / "rocket.webp") as picture:
        image = picture.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
    grain = np.random.default_rng(0).integers(60, 130, (height, width, 1))
    return Image.fromarray((np.asarray(image) // 3 + grain).clip(0, 255).astype(np.uint8))


def apart(one: float, other: float) -> float:
    """Up to quarter turns."""
    return abs((one - other + 45) % 90 - 45)


@pytest.mark.parametrize("fill", ["black", "white", "#0000ff"])
@pytest.mark.parametrize("expand", [True, False])
@pytest.mark.parametrize("angle", [3, 38, 87, 130, 222, 315])
def test_a_turned_rectangle_is_found(angle: float, expand: bool, fill: str) -> None:
    turned = photo().rotate(angle, Image.Resampling.BICUBIC, expand=expand, fillcolor=fill)
    found = frame_of(turned)
    assert found is not None and apart(found.angle, angle) < 0.3
    assert found.cut is not expand
    sides = found.sides[::-1] if round((angle - found.angle) / 90) % 2 else found.sides
    assert np.abs(np.subtract(sides, photo().size)).max() <= 4


def test_it_is_found_in_a_compressed_file() -> None:
    stream = io.BytesIO()
    turned = photo().rotate(25, Image.Resampling.BICUBIC, expand=True, fillcolor="white")
    turned.save(stream, "JPEG", quality=75)
    found = frame_of(Image.open(stream))
    assert found is not None and apart(found.angle, 25) < 0.3


def test_clear_corners_show_it_whatever_lies_beneath() -> None:
    turned = photo().convert("RGBA").rotate(25, Image.Resampling.BICUBIC, expand=True)
    found = frame_of(turned)
    assert found is not None and found.colour is None and apart(found.angle, 25) < 0.3


def with_border() -> Image.Image:
    image = photo().copy()
    ImageDraw.Draw(image).rectangle((0, 0, 479, 319), outline="white", width=6)
    return image


def disc() -> Image.Image:
    image = Image.new("RGB", (300, 300), "white")
    ImageDraw.Draw(image).ellipse((10, 10, 290, 290), fill="navy")
    return image


@pytest.mark.parametrize(
    "image",
    [
        photo(),
        photo().transpose(Image.Transpose.ROTATE_90),
        with_border(),
        disc(),
        Image.new("RGB", (64, 64), "white"),
        Image.new("RGB", (1, 1)),
        Image.new("RGBA", (40, 30)),
    ],
    ids=["photo", "sideways", "border", "disc", "blank", "pixel", "clear"],
)
def test_other_pictures_show_none(image: Image.Image) -> None:
    assert frame_of(image) is None


def test_a_frame_is_the_same_at_another_resolution() -> None:
    frame = Frame(30.0, (40.0, 20.0), (30.0, 25.0), (60, 50), "#000000", False)
    large = frame.on((600, 500))
    assert (large.sides, large.middle, large.angle) == ((400, 200), (300, 250), 30.0)


@pytest.mark.parametrize("angle", [38.0, 130.0, 222.0])
def test_turned_back_the_original_is_there_again(angle: float) -> None:
    turned = photo().rotate(angle, Image.Resampling.BICUBIC, expand=True, fillcolor="white")
    frame = frame_of(turned)
    assert frame is not None
    back = turn(turned, -angle, corners="restore", frame=frame)
    assert np.abs(np.subtract(back.size, photo().size)).max() <= 4
    near = photo().resize(back.size)
    assert np.abs(np.asarray(back, float) - np.asarray(near, float)).mean() < 16  # of the grain


def test_a_picture_cut_by_its_own_canvas_comes_back_at_its_size_in_its_own_colour() -> None:
    turned = photo().rotate(30, Image.Resampling.BICUBIC, fillcolor="white")
    back = turn(turned, -30, corners="restore", frame=frame_of(turned))
    assert back.size == photo().size
    assert back.getpixel((0, 0)) == (255, 255, 255)  # cut off before; of the fill's colour
    crop = turn(turned, -30, corners="crop", frame=frame_of(turned))
    assert not has_plain_ground(crop) and crop.width <= photo().width


def test_turned_by_another_angle_the_old_corners_are_filled_anew() -> None:
    turned = photo().rotate(30, Image.Resampling.BICUBIC, expand=True, fillcolor="white")
    back = turn(turned, -50, corners="restore", fill="red", frame=frame_of(turned))
    colours = np.asarray(back)[[0, 0, -1, -1], [0, -1, 0, -1]]
    assert (colours == (255, 0, 0)).all()
    assert not (np.asarray(back) == 255).all(2).any()  # nothing white is left
    array = turn(np.asarray(turned), -50, corners="restore", fill="red", frame=frame_of(turned))
    assert array.shape == np.asarray(back).shape
    assert np.abs(array.astype(float) - np.asarray(back, float)).mean() < 1


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "CMYK"])
def test_every_mode_is_filled_anew(mode: str) -> None:
    turned = photo().rotate(30, Image.Resampling.BICUBIC, expand=True, fillcolor="white")
    back = turn(turned.convert(mode), -50, corners="expand", fill="red", frame=frame_of(turned))
    assert back.mode == mode


def test_plain_ground() -> None:
    assert has_plain_ground(disc()) and not has_plain_ground(photo())
    assert has_plain_ground(Image.new("RGBA", (40, 30)))
