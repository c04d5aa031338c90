"""What a model's outputs mean: angles, and several looks brought back to one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from radialbeams.nn.posterior import (
    UPRIGHT,
    WITHIN,
    mass_near,
    of_quarter_turned_views,
    posterior,
)
from radialbeams.posterior import mass_towards, read_posterior, read_posteriors, read_unit

BEAMS = 8  # 45° apart


def peak(beam: int, strength: float = 20.0) -> np.ndarray:
    logits = np.zeros(BEAMS, dtype=np.float32)
    logits[beam] = strength
    return logits


def test_convention_a_beam_and_its_offset() -> None:
    offsets = np.full((1, BEAMS), 0.5, dtype=np.float32)
    (answer,) = read_posterior(peak(2)[None], offsets)
    assert answer.angle_degrees == pytest.approx((2 + 0.5) * 45)
    assert answer.symmetry == 1
    assert answer.confidence == pytest.approx(1, abs=1e-6)


def test_looks_are_brought_back_by_what_they_were_turned() -> None:
    """The same answer, 100°, seen in views that were turned by 0, ¼, ½ and ¾ of 45°."""
    shifts = np.arange(4, dtype=np.float32) / 4
    steps = 100 / 45 + shifts
    logits = np.stack([peak(int(step)) for step in steps])[None]
    offsets = np.broadcast_to((steps - steps.astype(int))[:, None], logits.shape[1:])[None]
    (answer,) = read_posteriors(logits, offsets.astype(np.float32), shifts)
    assert answer.angle_degrees == pytest.approx(100, abs=1e-3)
    assert answer.confidence == pytest.approx(1, abs=1e-5)
    assert answer.posterior is not None
    assert answer.posterior.shape == (BEAMS,)
    assert answer.posterior.sum() == pytest.approx(1)
    assert answer.posterior[[2, 3]].sum() > answer.posterior.sum() / 2


def test_most_looks_decide_and_a_stray_one_is_left_out() -> None:
    logits = np.stack([peak(1), peak(1), peak(5, 30), peak(1)])[None]
    (answer,) = read_posteriors(logits, np.zeros_like(logits), np.zeros(4, dtype=np.float32))
    assert answer.angle_degrees == pytest.approx(45)
    assert answer.confidence == pytest.approx(0.75, abs=1e-5)


def test_torch_reads_four_quarter_turned_views_alike() -> None:
    generator = np.random.default_rng(0)
    logits = 3 * generator.normal(size=(20, 4, 12)).astype(np.float32)
    offsets = generator.uniform(-0.5, 0.5, size=(20, 4, 12)).astype(np.float32)
    expected = read_posteriors(logits, offsets, np.arange(4, dtype=np.float32) * 3, 1.3)
    angle, read = of_quarter_turned_views(torch.tensor(logits), torch.tensor(offsets), 1.3)
    np.testing.assert_allclose(torch.rad2deg(angle), [a.angle_degrees for a in expected], atol=1e-3)
    np.testing.assert_allclose(
        mass_near(read, angle, WITHIN), [a.confidence for a in expected], atol=1e-5
    )


def test_looks_on_both_sides_of_zero_meet_there() -> None:
    logits = np.stack([peak(0), peak(0)])[None]
    offsets = np.stack([np.full(BEAMS, 0.1), np.full(BEAMS, -0.1)])[None].astype(np.float32)
    (answer,) = read_posteriors(logits, offsets, np.zeros(2, dtype=np.float32))
    assert min(answer.angle_degrees, 360 - answer.angle_degrees) < 1e-4
    assert 0 <= answer.angle_degrees < 360


def test_one_look_not_turned_is_a_single_answer() -> None:
    rng = np.random.default_rng(0)
    logits = np.stack([peak(beam) for beam in (0, 3, 6)])
    offsets = rng.uniform(-0.05, 0.05, logits.shape).astype(np.float32)
    once = read_posterior(logits, offsets)
    looks = read_posteriors(logits[:, None], offsets[:, None], np.zeros(1, dtype=np.float32))
    for one, other in zip(once, looks, strict=True):
        assert one.angle_degrees == pytest.approx(other.angle_degrees, abs=1e-4)
        np.testing.assert_allclose(one.posterior, other.posterior)


def test_unit_vectors_are_brought_back_and_averaged() -> None:
    angles = np.radians([350 + 0.0, 10 + 10.0])  # 350° as it is; 10° in a view turned by 10°
    unit = np.stack([np.cos(angles), np.sin(angles)], axis=1)[None].astype(np.float32)
    (answer,) = read_unit(unit, np.array([0, 10], dtype=np.float32))
    assert min(answer.angle_degrees, 360 - answer.angle_degrees) < 1e-4


@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_the_chance_of_being_upright_is_the_mass_around_zero(spread: float) -> None:
    logits = np.log(np.array([[0.2, 1e-9, 0.8, *[1e-9] * 5]], dtype=np.float32))
    offsets = np.zeros((1, BEAMS), dtype=np.float32)
    (answer,) = read_posterior(logits, offsets, spread=spread)
    assert answer.angle_degrees == pytest.approx(90)
    assert answer.upright == pytest.approx(0.2, abs=0.04)
    twin = posterior(torch.from_numpy(logits), torch.from_numpy(offsets))
    found = mass_near(twin, torch.zeros(1), UPRIGHT, np.radians(spread))
    assert answer.upright == pytest.approx(found.item(), abs=1e-6)


def test_the_mass_towards_an_angle() -> None:
    posterior = np.zeros(72, dtype=np.float32)
    posterior[[0, 1, 2, 36]] = (0.2, 0.1, 0.3, 0.4)  # 0°, 5°, 10°; and 180°, which is near neither
    assert mass_towards(posterior, 10.0) == pytest.approx((0.05 + 0.3) / 0.6)  # 5° is half way
    assert mass_towards(posterior, -10.0) == pytest.approx(0.0)
    assert mass_towards(np.roll(posterior, -2), -10.0) == pytest.approx((0.05 + 0.2) / 0.6)
    assert mass_towards(np.eye(72, dtype=np.float32)[36], 10.0) == 0.0
