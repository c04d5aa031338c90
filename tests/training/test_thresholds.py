"""Thresholds: few upright pictures come out worse, and of the turned ones many are acted on."""

from __future__ import annotations

import torch

from radialbeams.nn.angles import TURN
from radialbeams.posterior import Calibration, Thresholds
from radialbeams.training.calibrate import HeldOutOutputs, halves
from radialbeams.training.data import ImageSet
from radialbeams.training.thresholds import (
    RIGHT,
    SPOILT,
    HeldOutAnswers,
    abstention,
    abstention_of,
    thresholds,
    worse_crosswise,
)
from radialbeams.training.views import LeakfreeViews
from tests.training.test_calibrate import Overconfident

COUNT = 20_000


def views(*, doubtful: bool) -> HeldOutAnswers:
    """As sure as they are often right; where they are wrong, the truth has a share or has none."""
    generator = torch.Generator().manual_seed(0)
    sure = torch.rand(COUNT, generator=generator)
    wild = torch.rand(COUNT, generator=generator) > sure
    small = 2 * torch.randn(COUNT, generator=generator).abs()
    errors = torch.where(wild, 20 + 160 * torch.rand(COUNT, generator=generator), small)
    truth = torch.where(wild, torch.full_like(sure, 0.02 if doubtful else 0.0), sure)
    turned = 180 * torch.rand(COUNT, generator=generator)
    return HeldOutAnswers(errors, turned, sure, torch.where(turned < 5, sure, 0.0), truth)


def acted_on(seen: HeldOutAnswers, found: Thresholds) -> tuple[torch.Tensor, torch.Tensor]:
    """Which turned ones are, and which upright ones would come out worse."""
    sure = seen.sure >= found.confidence
    turned = sure & (seen.upright <= found.upright) & (seen.turned >= found.angle)
    return turned, sure & (seen.truth <= found.upright) & (seen.errors > found.angle)


def test_few_upright_pictures_would_come_out_worse() -> None:
    seen = views(doubtful=False)
    found = thresholds(seen)
    acted, worse = acted_on(seen, found)
    assert 0.004 < worse.float().mean() <= SPOILT
    assert (seen.errors[acted] <= 5).float().mean() >= RIGHT
    assert 0.8 < found.confidence < 0.95


def test_who_does_not_rule_out_the_truth_may_act_more_often() -> None:
    blind, doubtful = views(doubtful=False), views(doubtful=True)
    shares = []
    for seen in (blind, doubtful):
        acted, worse = acted_on(seen, thresholds(seen))
        assert worse.float().mean() <= SPOILT
        shares.append(acted.float().mean().item())
    assert shares[1] > shares[0] + 0.05
    assert thresholds(doubtful).upright < 0.02


def test_a_model_that_is_never_wrong_acts_from_even_chances_and_one_degree_on() -> None:
    ones = torch.ones(1000)
    found = thresholds(HeldOutAnswers(0.2 * ones, 90 * ones, torch.rand(1000), 0 * ones, ones))
    assert found == Thresholds(0.5, 1.0, 1.0)


def test_a_model_that_is_always_wrong_is_never_acted_on() -> None:
    ones = torch.ones(1000)
    found = thresholds(HeldOutAnswers(90 * ones, 90 * ones, 0.99 * ones, 0 * ones, 0 * ones))
    assert found.confidence == 1.0


def test_thresholds_come_from_views_of_a_model() -> None:
    images = ImageSet(
        "x", torch.zeros(300, 3, 64, 64, dtype=torch.uint8), ("k",) * 300, ("",) * 300
    )
    model = Overconfident(0.9, 1.0).eval()
    found = abstention(model, images, LeakfreeViews(28), Calibration(), seeds=1)
    assert 0.5 <= found.confidence <= 1


def sure_answers(wrong: torch.Tensor) -> HeldOutOutputs:
    """Each of 36 beams is answered with nearly all of the mass; where `wrong`, half a turn off."""
    beams = torch.arange(len(wrong)) % 36
    logits = torch.zeros(len(wrong), 36)
    logits[torch.arange(len(wrong)), (beams + 18 * wrong) % 36] = 12.0
    return HeldOutOutputs(logits, torch.zeros(len(wrong), 36), beams / 36 * TURN)


def test_thresholds_are_tried_on_the_half_that_they_do_not_know() -> None:
    first = [i % 2 == 0 for i in range(144)]
    good = sure_answers(torch.zeros(144, dtype=torch.long))
    assert worse_crosswise(good, halves(good, first)) == 0
    # All of the second half is wrong: what the first half allows spoils it.
    bad = sure_answers(1 - torch.tensor(first).long())
    assert worse_crosswise(bad, halves(bad, first)) == 0.5


def test_thresholds_from_few_images_ask_for_more() -> None:
    good = sure_answers(torch.zeros(144, dtype=torch.long))
    assert abstention_of(good, Calibration()).upright == 1.0
    assert abstention_of(good, Calibration(), careful=True).upright <= 0.003
