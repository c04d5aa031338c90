"""Canonicalizer: the angle that torch finds, in degrees, and the picture turned back by it."""

from __future__ import annotations

import hashlib
import io
import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from radialbeams import Canonicalization, Canonicalizer, canonicalize, zoo
from radialbeams.canonicalizer import BATCH, _loaded
from radialbeams.cards import parse, to_json
from radialbeams.demo import PICTURES
from radialbeams.images import ImageError, read, turn
from radialbeams.images.views import paper_view
from radialbeams.limits import DEFAULT
from radialbeams.nn.angles import from_unit
from radialbeams.posterior import Answer
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


def test_a_result_is_printed_without_its_dozens_of_probabilities(
    faces: Canonicalizer, turned: list[Image.Image]
) -> None:
    result = faces.predict(turned[0])
    assert result.posterior is not None and len(result.posterior) > 30
    assert f"angle_degrees={result.angle_degrees}" in repr(result)
    assert "array" not in repr(result) and "posterior" not in repr(result)


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
    result = faces.predict(turned[2], corners="same", abstain=None, snap="none")
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
    with pytest.raises(zoo.ModelNotFound, match=r"got 'nope'\. Pretrained models: bic\.coil100"):
        Canonicalizer("nope")


def test_a_gray_model_sees_one_channel(turned: list[Image.Image]) -> None:
    gray = Canonicalizer.__new__(Canonicalizer)
    gray.limits = DEFAULT
    gray.refine = 1
    for name, size in (("paper", 182), ("leakfree", 57)):
        protocol = {"name": name, "parent_size": 128}
        config = {"view_size": size, "channels": 1, "num_beams": 8, "decoder": "ring"}
        gray.card = parse({"protocol": protocol, "config": config})
        assert gray.view(turned[1]).shape == (1, size, size)


# --- the same type comes out ---


@pytest.fixture(scope="module")
def jpeg(turned: list[Image.Image]) -> bytes:
    stream = io.BytesIO()
    turned[1].save(stream, "JPEG", icc_profile=b"a profile", dpi=(300, 300))
    return stream.getvalue()


def test_bytes_come_back_as_bytes_of_the_same_format(faces: Canonicalizer, jpeg: bytes) -> None:
    result = faces.predict(jpeg)
    assert isinstance(result.image, bytes)
    again = Image.open(io.BytesIO(result.image))
    assert (again.format, again.info["icc_profile"], again.info["dpi"]) == (
        "JPEG",
        b"a profile",
        (300, 300),
    )


def test_a_file_comes_back_as_a_file(faces: Canonicalizer, jpeg: bytes) -> None:
    result = faces.predict(io.BytesIO(jpeg))
    assert isinstance(result.image, io.BytesIO)
    assert result.image.read() == faces.predict(jpeg).image


def test_a_path_comes_back_as_an_image(faces: Canonicalizer, jpeg: bytes, tmp_path: Path) -> None:
    path = tmp_path / "turned.jpg"
    path.write_bytes(jpeg)
    for source in (path, str(path)):
        result = faces.predict(source)
        assert isinstance(result.image, Image.Image)
        assert result.angle_degrees == faces.predict(jpeg).angle_degrees
    assert path.read_bytes() == jpeg


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (4,)])
def test_an_array_comes_back_as_such_an_array(
    faces: Canonicalizer, turned: list[Image.Image], dtype: Any, shape: tuple[int, ...]
) -> None:
    mode = {(): "L", (1,): "L", (3,): "RGB", (4,): "RGBA"}[shape]
    pixels = np.asarray(turned[1].convert(mode), dtype=np.float64).reshape(*turned[1].size, *shape)
    scale = {np.uint8: 1, np.uint16: 257}.get(dtype, 1 / 255)
    array = (pixels * scale).astype(dtype)
    result = faces.predict(array, corners="same")
    assert (result.image.dtype, result.image.shape) == (dtype, array.shape)
    assert apart(result.angle_degrees, TURNS[1]) < 8


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "CMYK"])
def test_an_image_keeps_its_mode(
    faces: Canonicalizer, turned: list[Image.Image], mode: str
) -> None:
    result = faces.predict(turned[1].convert(mode))
    assert result.image.mode == mode
    assert result.image.size == turned[1].size  # which its filled corners show
    whole = faces.predict(turned[1].convert(mode), snap="none", abstain=None)
    assert min(whole.image.size) > turned[1].width  # all of it is kept


def test_a_list_gives_a_list(faces: Canonicalizer, turned: list[Image.Image], jpeg: bytes) -> None:
    results = faces.predict([turned[2], jpeg])
    assert [type(result.image) for result in results] == [Image.Image, bytes]
    assert [result.angle_degrees for result in results] == [
        faces.predict(turned[2]).angle_degrees,
        faces.predict(jpeg).angle_degrees,
    ]
    assert faces.predict([]) == []


def test_the_angle_is_the_one_that_the_picture_was_turned_by(
    faces: Canonicalizer, turned: list[Image.Image]
) -> None:
    """Rounded to a hundredth first, so that whoever repeats the turn gets the same pixels."""
    for picture in turned:
        result = faces.predict(picture, corners="crop", fill="white", abstain=None, snap="none")
        assert result.angle_degrees == round(result.angle_degrees, 2)
        assert 0 <= result.angle_degrees < 360
        expected = turn(picture, -result.angle_degrees, corners="crop", fill="white")
        np.testing.assert_array_equal(np.asarray(result.image), np.asarray(expected))


@pytest.mark.parametrize(("found", "rounded"), [(359.996, 0.0), (0.004, 0.0), (12.345678, 12.35)])
def test_an_angle_that_rounds_to_a_whole_turn_is_none(
    faces: Canonicalizer, monkeypatch: pytest.MonkeyPatch, found: float, rounded: float
) -> None:
    monkeypatch.setattr(faces, "answers_from_views", lambda views, ends: [Answer(found)])
    assert faces.predict(Image.new("RGB", (8, 8))).angle_degrees == rounded


def test_frames_are_refused_or_the_first_is_taken(faces: Canonicalizer) -> None:
    stream = io.BytesIO()
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    frames[0].save(stream, "GIF", save_all=True, append_images=frames[1:])
    with pytest.raises(ImageError, match="first_frame=True"):
        faces.predict(stream.getvalue())
    assert isinstance(faces.predict(stream.getvalue(), first_frame=True).image, bytes)


def test_an_error_says_which_picture_it_was(
    faces: Canonicalizer, turned: list[Image.Image], jpeg: bytes
) -> None:
    for wrong, sentence in (
        ("nope.jpg", r"^nope\.jpg: There is no such file\."),
        (b"", r"^Picture 2 of 2: It is empty"),
        (io.StringIO("text"), r"^Picture 2 of 2: The file was opened as text"),
    ):
        with pytest.raises(ImageError, match=sentence):
            faces.predict([turned[0], wrong])
    with pytest.raises(ImageError, match=r"^It is empty"):
        faces.predict(b"")


def test_a_file_at_its_end_is_read_from_its_start(faces: Canonicalizer, jpeg: bytes) -> None:
    stream = io.BytesIO(jpeg)
    stream.read()
    assert faces.predict(stream).angle_degrees == faces.predict(jpeg).angle_degrees


def test_one_call_is_enough(turned: list[Image.Image]) -> None:
    result = canonicalize(turned[1], "ring.lfw", corners="same")
    assert apart(result.angle_degrees, TURNS[1]) < 5
    assert _loaded("ring.lfw", 1) is _loaded("ring.lfw", 1)
    assert Canonicalizer().name == zoo.DEFAULT


# --- many at once, and more than one look ---


def test_threads_share_one_canonicalizer(faces: Canonicalizer, turned: list[Image.Image]) -> None:
    pictures = turned * 6
    alone = angles_of(faces, pictures)
    with ThreadPoolExecutor(16) as pool:
        together = [answers[0] for answers in pool.map(faces.answers, [[p] for p in pictures])]
    for one, other in zip(alone, together, strict=True):
        assert apart(one, other.angle_degrees) < 1e-4


@pytest.mark.parametrize("model", ["ring.lfw", "bic.lfw"])
def test_more_looks_agree_with_one(model: str, turned: list[Image.Image]) -> None:
    once, often = (Canonicalizer(model, threads=1, refine=k) for k in (1, 4))
    assert once.view(turned[0]).shape == often.view(turned[0]).shape[1:]
    assert often.view(turned[0]).shape[0] == 4
    one, more = once.answers(turned), often.answers(turned)
    limit = 3 if model == "ring.lfw" else 25  # the paper's network is not equivariant
    away = [apart(a.angle_degrees, b.angle_degrees) for a, b in zip(one, more, strict=True)]
    assert np.median(away) < limit
    for answer in more:
        if model == "ring.lfw":
            assert answer.posterior is not None and answer.confidence is not None
            assert answer.posterior.shape == (64,)
            assert answer.posterior.sum() == pytest.approx(1, abs=1e-5)
            assert 0 <= answer.confidence <= 1


def test_no_look_is_refused() -> None:
    with pytest.raises(ValueError, match=r"number of views, must be at least 1; got 0\."):
        Canonicalizer("ring.lfw", refine=0)


# --- models that are none ---


def own_model(folder: Path, onnx: bytes) -> Path:
    card = to_json(zoo.find("bic.coil100").card)
    card["sha256"] = {"onnx": hashlib.sha256(onnx).hexdigest()}
    (folder / "mine.onnx").write_bytes(onnx)
    (folder / "mine.json").write_text(json.dumps(card))
    return folder / "mine.onnx"


def test_a_file_that_is_no_onnx_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for content in (b"no model", b"", zoo.verified_onnx(zoo.find("bic.coil100"))[:5000]):
        with pytest.raises(zoo.DamagedModel, match=r"not an ONNX model that runs here\. Export it"):
            Canonicalizer(own_model(tmp_path, content))


def test_a_model_of_something_else_is_refused_in_a_sentence(tmp_path: Path) -> None:
    ring = zoo.verified_onnx(zoo.find("ring.coil100"))
    with pytest.raises(zoo.DamagedModel, match=r"does not match its card: expected input views"):
        Canonicalizer(own_model(tmp_path, ring))


def test_the_runtimes_threads_sleep_while_they_have_nothing_to_do() -> None:
    """Awake, they take the cores from the other threads that call the same model."""
    options = Canonicalizer("ring.coil100")._session.get_session_options()
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
