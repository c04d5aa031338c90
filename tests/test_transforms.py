"""Steps of other people's pipelines: pickled, loaded late, the same type and shape out as in."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from radialbeams import transforms, zoo
from radialbeams.batch.job import JobSettings
from radialbeams.batch.processing import undo_for
from radialbeams.canonicalizer import Canonicalizer, Look, canonicalize
from radialbeams.defaults import thresholds_of
from radialbeams.posterior import Answer
from radialbeams.transforms import Upright, UprightTransformer

MODEL = "ring.coil100"
HORSE = Path(__file__).parents[1] / "radialbeams" / "pictures" / "horse.webp"


@pytest.fixture(scope="module")
def horse() -> Image.Image:
    return Image.open(HORSE).convert("RGB").resize((90, 64))


def arrays(image: Image.Image) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """(2, H, W, 3): the picture, and upside down."""
    pixels = np.asarray(image)
    return np.stack((pixels, pixels[::-1, ::-1]))


def test_a_picture_comes_back_upright(horse: Image.Image) -> None:
    made = Upright(MODEL)(horse)
    expected = canonicalize(horse, MODEL).image
    assert np.array_equal(np.asarray(made), np.asarray(expected))


def test_the_transform_is_pickled_without_its_model(horse: Image.Image) -> None:
    before = Upright(MODEL, corners="expand", fill="white")
    expected = before(horse)  # has loaded the model
    packed = pickle.dumps(before)
    assert len(packed) < 500
    after = pickle.loads(packed)
    assert after == before
    assert np.array_equal(np.asarray(after(horse)), np.asarray(expected))


def test_unsure_pictures_are_left_alone(horse: Image.Image) -> None:
    left = Upright(MODEL, abstain=1.1)(horse)
    assert np.array_equal(np.asarray(left), np.asarray(horse))
    stack = arrays(horse)
    assert np.array_equal(UprightTransformer(MODEL, abstain=1.1).fit_transform(stack), stack)


def test_the_model_without_a_confidence_always_turns(horse: Image.Image) -> None:
    turned = Upright("bic.coil100", abstain=0.9)(horse)
    assert not np.array_equal(np.asarray(turned), np.asarray(horse))


@pytest.mark.parametrize(
    ("answer", "turned"),
    [  # the card of this model: confidence 0.95, angle 1°, upright 0.03
        (Answer(180.0, 0.95, upright=0.03), True),
        (Answer(180.0, 0.949, upright=0.0), False),
        (Answer(359.0, 0.99, upright=0.0), True),
        (Answer(359.1, 0.99, upright=0.0), False),
        (Answer(180.0, 0.99, upright=0.031), False),
    ],
)
def test_the_cards_thresholds_decide_as_the_commands_do(
    horse: Image.Image, monkeypatch: pytest.MonkeyPatch, answer: Answer, turned: bool
) -> None:
    monkeypatch.setattr(
        Canonicalizer, "answers_and_looks", lambda *_, **__: ([answer], [Look(None, None)])
    )
    given = np.asarray(horse)
    single = np.asarray(Upright("ring.lfw", snap="none", corners="same")(horse))
    (stacked,) = UprightTransformer("ring.lfw", snap="none").transform(given[None])
    assert [not np.array_equal(made, given) for made in (single, stacked)] == [turned] * 2
    least = thresholds_of(zoo.find("ring.lfw").card)
    job = JobSettings(
        "ring.lfw",
        snap="none",
        min_confidence=least.confidence,
        min_angle=least.angle,
        max_upright=least.upright,
    )
    assert (undo_for(answer, None, job).decision.turn is not None) is turned


@pytest.mark.parametrize("step", [Upright, UprightTransformer])
def test_impossible_settings_are_refused_at_once(step: Any) -> None:
    for wrong in ("sure", math.nan, -0.1, True):
        with pytest.raises(
            ValueError, match=f"abstain must be a confidence, .*; got {wrong!r} for"
        ):
            step(MODEL, abstain=wrong)
    with pytest.raises(ValueError, match="snap must be one of auto, 90, none; got '45'"):
        step(MODEL, snap="45")
    with pytest.raises(zoo.ModelNotFound, match=r"got 'rong'\. Pretrained models: "):
        step("rong")


def test_parameters_set_later_are_checked_too() -> None:
    step = UprightTransformer(MODEL)
    with pytest.raises(ValueError, match="abstain must be a confidence"):
        step.set_params(image_shape=(8, 8), abstain="sure")
    assert step.image_shape is None
    assert repr(step) == (
        "UprightTransformer(model='ring.coil100', abstain='card', image_shape=None, snap='auto')"
    )


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("channels", [0, 1, 3])
def test_arrays_keep_their_shape_and_type(
    horse: Image.Image, kind: type[np.generic], channels: int
) -> None:
    stack = arrays(horse)[..., 0] if not channels else arrays(horse)[..., :channels]
    given = (stack / 255 if kind is np.float32 else stack).astype(kind)
    made = UprightTransformer(MODEL, abstain=None).fit(given).transform(given)
    assert (made.shape, made.dtype) == (given.shape, given.dtype)
    assert not np.array_equal(made, given)


def test_rows_are_read_as_pictures(horse: Image.Image) -> None:
    stack = arrays(horse)
    rows = UprightTransformer(MODEL, image_shape=(64, 90, 3)).transform(stack.reshape(2, -1))
    assert np.array_equal(rows.reshape(stack.shape), UprightTransformer(MODEL).transform(stack))


def test_no_pictures_are_none() -> None:
    assert UprightTransformer(MODEL).transform(np.zeros((0, 8, 8), np.uint8)).shape == (0, 8, 8)


def test_a_quarter_turn_keeps_the_canvas(
    horse: Image.Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one such answer in a batch of wide pictures could not be stacked with the others."""
    quarter = [Answer(90.0, 1.0), Answer(180.0, 1.0)]
    monkeypatch.setattr(
        Canonicalizer, "answers_and_looks", lambda *_, **__: (quarter, [Look(None, None)] * 2)
    )
    stack = arrays(horse)
    made = UprightTransformer(MODEL).transform(stack)
    assert made.shape == stack.shape
    assert np.array_equal(made[1], stack[0])


def test_parameters_as_scikit_learn_wants_them() -> None:
    step = UprightTransformer(MODEL, abstain=0.3)
    again = UprightTransformer(**step.get_params())
    assert again.get_params() == step.get_params()
    assert step.set_params(abstain=0.7).abstain == 0.7
    with pytest.raises(ValueError, match=r"of UprightTransformer .*; got absten"):
        step.set_params(absten=1)


def test_in_a_pipeline_of_scikit_learn(horse: Image.Image) -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline

    rows = np.repeat(arrays(horse), 3, axis=0).reshape(6, -1)
    step = UprightTransformer(MODEL, image_shape=(64, 90, 3))
    model = clone(make_pipeline(step, KNeighborsClassifier(1)))
    found = model.fit(rows, [0, 0, 0, 1, 1, 1]).predict(rows)
    assert found.shape == (6,)
    assert model[0].get_params() == step.get_params()


def test_a_process_loads_a_model_once() -> None:
    transforms._loaded.cache_clear()
    assert transforms._loaded(MODEL) is transforms._loaded(MODEL)
