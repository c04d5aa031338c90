"""The ring commutes with rolls of the beams, and its posterior is read the same way everywhere."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from radialbeams.nn.angles import TURN, angular_error, wrap
from radialbeams.nn.layers import StochasticDepth
from radialbeams.nn.losses import RingLoss
from radialbeams.nn.posterior import (
    OFFSET_REACH,
    Posterior,
    answer,
    confidence,
    posterior,
    ring_loss,
    symmetry,
)
from radialbeams.nn.ring import Halved, Pointwise, Ring, circular
from radialbeams.nn.ring_fast import FastRing, FastRingBlock, interpolated, product, with_fast_forms
from radialbeams.nn.ring_network import RingBIC, RingConfig
from radialbeams.posterior import read_posterior


def small_config(**changes: object) -> RingConfig:
    settings = {"view_size": 28, "sampler": "polar", "num_beams": 16}
    settings |= {"beam_length": 16, "epsilon": 0, "stem": 8, "stages": (8, 12)}
    return RingConfig(**{**settings, "width": 16, **changes})  # type: ignore[arg-type]


@pytest.fixture(params=[0, 2], ids=["convolutions", "attention"])
def ring(request: pytest.FixtureRequest) -> RingBIC:
    """Random weights, and running statistics that are not those of a fresh network."""
    torch.manual_seed(0)
    model = RingBIC(small_config(attention=request.param))
    for name, weight in model.named_parameters():
        if name.endswith("apart"):
            torch.nn.init.normal_(weight)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None  # the plain mean of what it sees
    for _ in range(3):
        model(torch.rand(8, 3, 28, 28))
    return model.eval()


@pytest.mark.parametrize("shift", [1, 5, 15])
@pytest.mark.parametrize("training", [False, True])
def test_a_roll_of_the_beams_rolls_the_posterior(ring: RingBIC, shift: int, training: bool) -> None:
    ring.train(training)
    beams = torch.rand(4, 16, 3, 1, 16)
    logits, offsets = ring.ring(beams)
    rolled_logits, rolled_offsets = ring.ring(beams.roll(shift, 1))
    torch.testing.assert_close(rolled_logits, logits.roll(shift, 1), atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(rolled_offsets, offsets.roll(shift, 1), atol=2e-6, rtol=1e-5)
    assert not torch.allclose(rolled_logits, logits, atol=1e-3)


def test_padding_that_is_not_circular_would_be_noticed(
    ring: RingBIC, monkeypatch: pytest.MonkeyPatch
) -> None:
    def zeros(features: torch.Tensor, beams: int) -> torch.Tensor:
        return torch.nn.functional.pad(features, (0, 0, beams, beams))

    monkeypatch.setattr("radialbeams.nn.ring.circular", zeros)
    beams = torch.rand(4, 16, 3, 1, 16)
    logits, rolled = ring.ring(beams)[0], ring.ring(beams.roll(1, 1))[0]
    assert (rolled - logits.roll(1, 1)).abs().max() > 1e-3


@pytest.mark.parametrize("sampler", ["polar", "bresenham"])
def test_a_quarter_turn_of_the_view_turns_the_answer_by_90_degrees(sampler: str) -> None:
    torch.manual_seed(1)
    model = RingBIC(small_config(sampler=sampler, beam_length=14)).eval()
    views = torch.rand(8, 3, 28, 28)
    turned = model.angles(torch.rot90(views, 1, (-2, -1)))
    assert wrap(turned - model.angles(views) - math.pi / 2).abs().max() < 1e-4


def test_offsets_stay_within_their_reach(ring: RingBIC) -> None:
    _, offsets = ring(1000 * torch.randn(4, 3, 28, 28))
    assert offsets.abs().max() <= OFFSET_REACH


@pytest.mark.parametrize("length", [4, 16, 31, 32, 56])
@pytest.mark.parametrize("stages", [(8,), (8, 12), (8, 12, 16)])
def test_any_length_of_beams_collapses_to_one_answer_each(
    length: int, stages: tuple[int, ...]
) -> None:
    ring = Ring(3, length, 8, stages, 1, 16, (1, 2), 4, num_beams=12)
    logits, offsets = ring(torch.rand(2, 12, 3, 1, length))
    assert logits.shape == offsets.shape == (2, 12)


def peaked(*degrees: float, beams: int = 72, width: float = 5.0) -> Posterior:
    """Equal bumps at these angles."""
    angles = torch.arange(beams) * TURN / beams
    bumps = [
        torch.exp(
            -((torch.rad2deg(angular_error(angles, torch.tensor(math.radians(d)))) / width) ** 2)
        )
        for d in degrees
    ]
    mass = torch.stack(bumps).sum(0)
    return Posterior((mass / mass.sum() + 1e-12).log()[None], angles[None])


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
def test_symmetry_is_the_number_of_equal_peaks(k: int) -> None:
    found = peaked(*(17.0 + 360 * i / k for i in range(k)))
    assert symmetry(found).tolist() == [k]


def test_a_plain_disc_has_no_up() -> None:
    flat = posterior(torch.zeros(1, 48), torch.zeros(1, 48))
    assert symmetry(flat).tolist() == [0]
    assert confidence(flat).item() == pytest.approx(3 / 48)


def test_confidence_is_the_mass_near_the_answer() -> None:
    assert confidence(peaked(100)).item() > 0.98
    assert confidence(peaked(100, 280)).item() == pytest.approx(0.5, abs=0.02)


def test_a_spread_takes_from_a_sharp_peak_what_may_be_off() -> None:
    sharp = peaked(100, width=1.0)
    assert confidence(sharp, math.radians(4)).item() == pytest.approx(0.848, abs=0.01)
    assert confidence(sharp, math.radians(0.1)).item() == pytest.approx(1, abs=0.01)


def test_a_higher_temperature_is_less_sure() -> None:
    logits, offsets = torch.randn(5, 32) * 4, torch.zeros(5, 32)
    cold, warm = (confidence(posterior(logits, offsets, t)) for t in (1.0, 3.0))
    assert (warm < cold).all()


def test_convention_the_answer_is_the_best_beam_and_its_offset() -> None:
    logits = torch.zeros(1, 8)
    logits[0, 2] = 5.0
    offsets = torch.full((1, 8), 0.5)
    assert math.degrees(answer(posterior(logits, offsets)).item()) == pytest.approx(112.5)
    tiny = torch.full((1, 8), -1e-9)
    logits[0, 0] = 9.0
    assert answer(posterior(logits, tiny)).item() < TURN  # and not 2π itself
    assert math.degrees(answer(posterior(logits, -offsets)).item()) == pytest.approx(337.5)


def test_numpy_reads_the_posterior_as_torch_does() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(50, 48, generator=generator) * 3
    offsets = torch.randn(50, 48, generator=generator)
    found = posterior(logits, offsets, 1.7)
    answers = read_posterior(logits.numpy(), offsets.numpy(), 1.7)
    blurred = read_posterior(logits.numpy(), offsets.numpy(), 1.7, 3.0)
    expected = confidence(found, math.radians(3.0))
    np.testing.assert_allclose([a.confidence for a in blurred], expected, atol=1e-5)
    degrees = torch.rad2deg(answer(found)).numpy()
    np.testing.assert_allclose([a.angle_degrees for a in answers], degrees, atol=1e-3)
    np.testing.assert_allclose([a.confidence for a in answers], confidence(found), atol=1e-5)
    assert [a.symmetry for a in answers] == symmetry(found).tolist()


def test_the_loss_is_least_at_the_truth() -> None:
    truth = torch.tensor([0.0, 1.0, 3.0, 6.2])
    beams = torch.arange(48) * TURN / 48
    steps = wrap(truth[:, None] - beams) * 48 / TURN
    logits = torch.cos(beams - truth[:, None]) / (TURN / 48) ** 2
    offsets = steps.clamp(-1.5, 1.5)
    best, circle = ring_loss(truth, logits, offsets)
    assert circle.max() < 1e-6
    for turn in (0.1, 0.5, 3.0):
        worse, _ = ring_loss(truth + turn, logits, offsets)
        assert (worse > best + 0.01).all()


def test_every_weight_of_the_ring_learns(ring: RingBIC) -> None:
    ring.train()
    loss, _ = ring_loss(torch.rand(8) * 6, *ring(torch.rand(8, 3, 28, 28)))
    loss.mean().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in ring.parameters())


def test_each_part_of_the_loss_has_its_weight() -> None:
    torch.manual_seed(3)
    truth, logits, offsets = torch.rand(6) * 6, torch.randn(6, 24), torch.rand(6, 24)
    alone = RingLoss(circle=0, offset=0)
    crossed = ring_loss(truth, logits, offsets, alone)[0]
    circle = ring_loss(truth, logits, offsets, replace(alone, circle=1))[0] - crossed
    missed = ring_loss(truth, logits, offsets, replace(alone, offset=1))[0] - crossed
    whole = ring_loss(truth, logits, offsets, RingLoss(circle=3, offset=7))[0]
    torch.testing.assert_close(whole, crossed + 3 * circle + 7 * missed)
    assert (circle > 0).all() and (missed > 0).all()


def test_a_wide_target_asks_for_a_wide_posterior() -> None:
    truth, offsets = torch.tensor([1.0]), torch.zeros(1, 36)
    beams = torch.arange(36) * TURN / 36
    sharp, soft = ((torch.cos(beams - 1.0) / (w * TURN / 36) ** 2)[None] for w in (1, 3))

    def loss(logits: torch.Tensor, width: float) -> float:
        parts = RingLoss(width=width, circle=0, offset=0)
        return ring_loss(truth, logits, offsets, parts)[0].item()

    assert loss(sharp, 1) < loss(soft, 1)
    assert loss(soft, 3) < loss(sharp, 3)


def test_a_target_without_width_is_refused() -> None:
    with pytest.raises(ValueError, match="width of a target must be above 0; got 0"):
        RingLoss(width=0)


# --- the fast forms compute the same ---


@pytest.mark.parametrize("dilation", [1, 2, 5])
def test_a_dilated_circular_convolution_is_one_product(dilation: int) -> None:
    torch.manual_seed(4)
    ring = Ring(3, 16, 8, (8,), 1, 6, (dilation,), 2, num_beams=12)
    block, features = with_fast_forms(ring).ring[0], torch.randn(3, 6, 12, 1)
    assert isinstance(block, FastRingBlock)
    expected = block.wide(circular(features, dilation))
    torch.testing.assert_close(block.convolved(features), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(block.eval().convolved(features), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_circle_that_is_closed_once_is_closed_for_every_block(depth: int) -> None:
    torch.manual_seed(6)
    ring = with_fast_forms(Ring(3, 24, 8, (8, 12), depth, 16, (1, 2), 2, num_beams=12)).eval()
    assert isinstance(ring, FastRing)
    beams = torch.rand(2, 12, 3, 1, 24)
    expected = ring(beams)
    seen = []
    ring.stem.register_forward_pre_hook(lambda _, given: seen.append(given[0].shape[2]))
    torch.testing.assert_close(ring.closed_once(beams), expected)
    assert seen == [12 + 2 * (1 + 2 * 2 * depth)]


def test_a_circle_is_not_closed_once_in_training_nor_with_fewer_beams_than_it_takes() -> None:
    class OnAGpu:
        is_cuda = True

        def __init__(self, beams: int) -> None:
            self.shape = (2, beams, 3, 1, 24)

    ring = with_fast_forms(Ring(3, 24, 8, (8, 12), 1, 16, (1,), 2, num_beams=12))
    assert isinstance(ring, FastRing)
    assert not ring.closes_once(OnAGpu(12))  # type: ignore[arg-type]
    ring.eval()
    assert ring.closes_once(OnAGpu(5))  # type: ignore[arg-type]
    assert not ring.closes_once(OnAGpu(4))  # type: ignore[arg-type]
    assert not ring.closes_once(torch.rand(2, 12, 3, 1, 24))


def test_a_product_is_a_convolution_and_a_mean_is_a_pooling() -> None:
    torch.manual_seed(7)
    features, layer = torch.randn(2, 6, 12, 8), Pointwise(6, 5)
    torch.testing.assert_close(product(features, layer.weight, layer.bias), layer(features))
    torch.testing.assert_close(interpolated(features), Halved()(features))


def test_fast_forms_keep_the_weights_and_their_names() -> None:
    torch.manual_seed(8)
    plain = Ring(3, 24, 8, (8, 12), 1, 16, (1, 2), 2, num_beams=12, attention=1).eval()
    before = {name: value.clone() for name, value in plain.state_dict().items()}
    beams = torch.rand(2, 12, 3, 1, 24)
    expected = plain(beams)
    torch.testing.assert_close(with_fast_forms(plain)(beams), expected, atol=1e-5, rtol=1e-5)
    assert plain.state_dict().keys() == before.keys()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("training", [False, True])
def test_on_a_gpu_the_forms_compute_what_the_plain_layers_compute(training: bool) -> None:
    torch.manual_seed(9)
    make = lambda: Ring(3, 24, 8, (8, 12), 1, 16, (1, 2), 2, num_beams=12, attention=1)  # noqa: E731
    plain, fast = make(), with_fast_forms(make())
    fast.load_state_dict(plain.state_dict())
    beams = torch.rand(4, 12, 3, 1, 24, device="cuda")
    results = [ring.cuda().train(training)(beams) for ring in (plain, fast)]
    torch.testing.assert_close(results[0], results[1], atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"depth": 0}, "depth must be at least 1; got 0."),
        (
            {"width": 12, "attention": 1},
            "width must be a multiple of 8, the attention heads; got 12.",
        ),
        ({"stem_stride": 65}, "stem_stride must be at most beam_length, 16; got 65."),
    ],
)
def test_impossible_settings_of_the_ring_are_refused(changes: dict[str, int], text: str) -> None:
    with pytest.raises(ValueError, match="must") as error:
        small_config(**changes)
    assert str(error.value) == text


def test_a_branch_is_left_out_of_a_share_of_the_views_in_training_only() -> None:
    torch.manual_seed(5)
    dropped, ones = StochasticDepth(0.25), torch.ones(4000, 1, 1, 1)
    found = dropped(ones)
    assert found.unique().tolist() == pytest.approx([0, 4 / 3])
    assert found.mean() == pytest.approx(1, abs=0.03)
    assert (dropped.eval()(ones) == 1).all()
    with pytest.raises(ValueError, match=r"drop must lie in \[0, 1\); got 1"):
        small_config(drop=1.0)
