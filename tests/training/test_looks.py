"""Looking again: the answers that follow from stored outputs, and what is decided from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from radialbeams.posterior import Calibration, Thresholds
from radialbeams.training import looks
from radialbeams.training.looks import LookOutputs

BINS, COUNT = 72, 400
CALM = Calibration()


@pytest.fixture
def outputs() -> LookOutputs:
    """Nine first looks in ten are right and sure; the others are wrong, unsure, and alone in it."""
    random = np.random.default_rng(0)
    degrees = random.uniform(0, 360, COUNT).astype(np.float32)
    wrong = np.zeros((COUNT, 4), bool)
    wrong[::10, 0] = True
    shown = degrees[:, None] + 90 * np.arange(4) + np.where(wrong, 90, 0)
    steps = shown % 360 * (BINS / 360)
    nearest = np.round(steps).astype(int)
    logits = np.zeros((COUNT, 4, BINS), np.float32)
    height = np.where(wrong, 4.0, 12.0)
    np.put_along_axis(logits, (nearest % BINS)[..., None], height[..., None], 2)
    offsets = np.zeros_like(logits)
    rest = (steps - nearest)[..., None].astype(np.float32)
    np.put_along_axis(offsets, (nearest % BINS)[..., None], rest, 2)
    return LookOutputs(logits, offsets, degrees, tuple(map(str, range(COUNT))))


def test_one_look_is_wrong_where_the_first_is_and_four_are_not(outputs: LookOutputs) -> None:
    one = looks.answers_by_rule(outputs, CALM, 0.0)
    rule = looks.answers_by_rule(outputs, CALM, 0.9)
    assert (looks.errors(one, outputs.degrees) > 80).mean() == pytest.approx(0.1)
    assert looks.errors(rule, outputs.degrees).max() < 1


def test_counted_from_the_truth_every_right_answer_is_upright(outputs: LookOutputs) -> None:
    upright = outputs.turned_upright()
    answers = looks.answers_by_rule(upright, CALM, 0.9)
    assert looks.errors(answers, upright.degrees).max() < 1
    sure = [answer.upright for answer in answers]
    assert min(chance for chance in sure if chance is not None) > 0.5


def test_upright_photos_suffer_where_a_sure_answer_is_wrong(outputs: LookOutputs) -> None:
    least = Thresholds(0.3, 1.0, 0.05)
    one = looks.acting(looks.held_out_answers(outputs, CALM, 0.0), least)
    rule = looks.acting(looks.held_out_answers(outputs, CALM, 0.9), least)
    assert one["upright_worse"] == pytest.approx(0.1)
    assert rule["upright_worse"] == 0
    assert rule["acted_on_within_5"] == 1 > one["acted_on_within_5"]


def test_what_to_expect_is_measured_on_the_other_half(outputs: LookOutputs) -> None:
    """A half that is always wrong cannot vouch for itself with the thresholds of the other."""
    first = np.arange(COUNT) % 2 == 0
    spoilt = LookOutputs(
        outputs.logits,
        outputs.offsets,
        np.where(first, outputs.degrees, outputs.degrees + 120).astype(np.float32),
        outputs.keys,
    )
    expected = looks.crosswise(spoilt, first, 0.9, spoilt=0.003, right=0.92)
    assert expected["n"] == COUNT
    assert expected["upright_worse"] > 0.4


def test_stored_outputs_are_read_with_a_key_for_every_view(tmp_path: Path) -> None:
    one = np.zeros((6, 4, BINS), np.float16)
    file = tmp_path / "looks.npz"
    np.savez(file, logits=one, offsets=one, degrees=np.zeros(6), keys=np.array(["a", "b", "c"]))
    assert LookOutputs.read(file).keys == ("a", "b", "c", "a", "b", "c")
