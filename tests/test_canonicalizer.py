"""Canonicalizer: the angle that torch finds, in degrees, and the picture turned back by it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from radialbeams import Canonicalization, Canonicalizer, zoo
from radialbeams.canonicalizer import BATCH
from radialbeams.demo import PICTURES
from radialbeams.images import read, turn
from radialbeams.images.views import paper_view
from radialbeams.nn.angles import from_unit
from radialbeams.training.weights import load_model

TURNS = (0.0, 40.0, 95.0, 160.0, 290.0, 335.0)


@pytest.fixture(scope="module")
def canonicalizer() -> Canonicalizer:
    return Canonicalizer("bic.coil100", threads=1)


@pytest.fixture(scope="module")
def faces() -> Canonicalizer:
    """The model that knows the picture below."""
    return Canonicalizer("ring.lfw", threads=1)


@pytest.fixture(scope="module")
def turned() -> list[Image.Image]:
    picture = read(PICTURES / "astronaut.webp").image
    return [turn(picture, degrees, corners="same") for degrees in TURNS]


def angles_of(canonicalizer: Canonicalizer, pictures: list[Any]) -> list[float]:
    return [answer.angle_degrees for answer in canonicalizer.answers(pictures)]


def apart(first: float, second: float) -> float:
    return abs((first - second + 180) % 360 - 180)


def test_angles_are_degrees_on_the_circle(faces: Canonicalizer, turned: list[Image.Image]) -> None:
    angles = angles_of(faces, turned)
    assert len(angles) == len(turned)
    assert all(isinstance(angle, float) and 0 <= angle < 360 for angle in angles)
    for angle, true in zip(angles, TURNS, strict=True):
        assert apart(angle, true) < 5


@pytest.mark.parametrize(
    ("unit", "degrees"),
    [((1.0, 0.0), 0), ((0.0, 1.0), 90), ((-1.0, 0.0), 180), ((0.0, -1.0), 270), ((1.0, -1e-20), 0)],
)
def test_convention_the_angle_of_a_unit_vector(
    canonicalizer: Canonicalizer,
    monkeypatch: pytest.MonkeyPatch,
    unit: tuple[float, float],
    degrees: float,
) -> None:
    class Session:
        def run(self, names: None, feed: dict[str, Any]) -> list[np.ndarray]:
            return [np.array([unit] * len(feed["views"]), dtype=np.float32)]

    monkeypatch.setattr(canonicalizer, "_session", Session())
    (angle,) = angles_of(canonicalizer, [Image.new("RGB", (8, 8))])
    assert 0 <= angle < 360
    assert apart(angle, degrees) < 1e-6


def test_many_pictures_are_what_each_is_alone(
    canonicalizer: Canonicalizer, turned: list[Image.Image]
) -> None:
    many = (turned * (BATCH // len(turned) + 1))[: BATCH + 2]  # more than one batch
    alone = [angles_of(canonicalizer, [picture])[0] for picture in turned]
    for number, angle in enumerate(angles_of(canonicalizer, many)):
        assert apart(angle, alone[number % len(turned)]) < 1e-3


def test_no_pictures_have_no_angles(canonicalizer: Canonicalizer) -> None:
    assert angles_of(canonicalizer, []) == []


def test_it_finds_what_torch_finds(canonicalizer: Canonicalizer, turned: list[Image.Image]) -> None:
    model, _ = load_model(zoo.find("bic.coil100").stem)
    views = np.stack([paper_view(picture, model.config.view_size) for picture in turned])
    with torch.inference_mode():
        expected = torch.rad2deg(from_unit(model(torch.from_numpy(views)))).tolist()
    for found, angle in zip(angles_of(canonicalizer, turned), expected, strict=True):
        assert apart(found, angle) < 0.02


def test_the_picture_comes_back_turned_by_the_angle(
    faces: Canonicalizer, turned: list[Image.Image]
) -> None:
    result = faces.predict(turned[2], corners="same")
    assert isinstance(result, Canonicalization)
    assert result.angle_degrees == round(angles_of(faces, [turned[2]])[0], 2)
    assert result.confidence is not None and result.confidence > 0.8
    assert result.symmetry == 1
    expected = turn(turned[2], -result.angle_degrees, corners="same")
    np.testing.assert_array_equal(np.asarray(result.image), np.asarray(expected))
    upright = np.asarray(turned[0]).astype(float)
    before = np.abs(np.asarray(turned[2]) - upright).mean()
    assert np.abs(np.asarray(result.image) - upright).mean() < before / 2


def test_a_path_is_as_good_as_a_picture(
    canonicalizer: Canonicalizer, turned: list[Image.Image], tmp_path: Path
) -> None:
    turned[1].save(tmp_path / "turned.png")
    path = tmp_path / "turned.png"
    assert angles_of(canonicalizer, [path, str(path)]) == pytest.approx(
        angles_of(canonicalizer, [turned[1]] * 2), abs=1e-3
    )


def test_a_run_of_ones_own_can_be_used(finished_run: Path, turned: list[Image.Image]) -> None:
    model, _ = load_model(finished_run / "model")
    (found,) = angles_of(Canonicalizer(finished_run, threads=1), turned[:1])
    view = torch.from_numpy(paper_view(turned[0], model.config.view_size))
    with torch.inference_mode():
        re, im = model(view[None])[0].tolist()
    assert apart(found, math.degrees(math.atan2(im, re))) < 0.05


def test_an_unknown_model_is_refused_with_the_names() -> None:
    with pytest.raises(zoo.ModelNotFound, match=r"got 'nope'\. Shipped models: bic\.coil100"):
        Canonicalizer("nope")


def test_a_gray_model_sees_one_channel(turned: list[Image.Image]) -> None:
    gray = Canonicalizer.__new__(Canonicalizer)
    gray.refine = 1
    for name, size in (("paper", 182), ("leakfree", 57)):
        protocol = {"name": name, "parent_size": 128}
        gray.card = {
            "protocol": protocol,
            "config": {"view_size": size, "channels": 1, "num_beams": 8},
        }
        assert gray.view(turned[1]).shape == (1, size, size)
