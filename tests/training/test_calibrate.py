"""Two numbers make confidence mean what it says."""

from __future__ import annotations

import torch

from radialbeams.nn.angles import TURN, angular_error
from radialbeams.nn.posterior import answer, confidence, posterior
from radialbeams.nn.ring_network import RingBIC, RingConfig
from radialbeams.training.calibrate import SPREADS, TEMPERATURES, calibrate
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import expected_calibration_error
from radialbeams.training.views import LeakfreeViews, draw_angles

BEAMS = 40  # so that a beam's neighbours are within 10° of it, not on the very edge


class Overconfident(RingBIC):
    """Right about `share` of the time, by logits that are `times` too large for that."""

    def __init__(self, share: float, times: float) -> None:
        super().__init__(RingConfig(view_size=28, sampler="polar", epsilon=0, beam_length=16))
        self.share, self.times, self.shown = share, times, 0

    def forward(self, views: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        count = len(views)
        angles = draw_angles("evaluation", 1000, 0, 600)[self.shown : self.shown + count]
        right = torch.arange(self.shown, self.shown + count) % 5 < 5 * self.share
        self.shown = (self.shown + count) % 600
        beams = torch.round(angles / TURN * BEAMS).long() % BEAMS
        beams = torch.where(right, beams, (beams + BEAMS // 2) % BEAMS)
        logits = torch.zeros(count, BEAMS)
        # At temperature `times` the best beam and its two neighbours hold `share` of the mass.
        odds = self.share / (1 - self.share) * (BEAMS - 3) / 3
        for step in (-1, 0, 1):
            height = torch.log(torch.tensor(odds)) * self.times + (0.01 if step == 0 else 0)
            logits[torch.arange(count), (beams + step) % BEAMS] = height
        offset = (angles / TURN * BEAMS - torch.round(angles / TURN * BEAMS))[:, None]
        return logits, offset.expand(-1, BEAMS)


def uncalibrated(model: Overconfident) -> float:
    logits, offsets = model(torch.zeros(600, 3, 28, 28))
    found = posterior(logits, offsets)
    truth = draw_angles("evaluation", 1000, 0, 600)
    right = torch.rad2deg(angular_error(answer(found), truth)) <= 10
    return expected_calibration_error(right, confidence(found))


def test_the_temperature_undoes_overconfidence() -> None:
    images = ImageSet(
        "x", torch.zeros(600, 3, 64, 64, dtype=torch.uint8), ("k",) * 600, ("",) * 600
    )
    model = Overconfident(0.8, 2.5).eval()
    found, error = calibrate(
        model, images, LeakfreeViews(28), in_first=lambda i: i // 5 % 2 == 0, seeds=1
    )
    # Temperature and spread can stand in for each other; what counts is what they make of it.
    assert found.temperature > 1.4 and found.spread in SPREADS
    # Ten bins of 60 answers, 80 % of them right: chance alone makes gaps of 0.04.
    assert error < 0.06
    assert uncalibrated(model) > 0.15


def test_no_temperature_sharpens() -> None:
    assert min(TEMPERATURES) == 1


def test_the_error_of_calibration_is_the_gap() -> None:
    right = torch.tensor([True] * 7 + [False] * 3)
    assert expected_calibration_error(right, torch.full((10,), 0.7), bins=1) < 1e-7
    assert abs(expected_calibration_error(right, torch.full((10,), 0.9), bins=1) - 0.2) < 1e-6


def test_the_error_is_measured_on_the_half_that_was_not_fitted() -> None:
    """A model that is right on one half only: each half's calibration is wrong for the other."""
    images = ImageSet(
        "x", torch.zeros(600, 3, 64, 64, dtype=torch.uint8), ("k",) * 600, ("",) * 600
    )
    model = Overconfident(0.8, 2.5).eval()
    _, error = calibrate(model, images, LeakfreeViews(28), in_first=lambda i: i % 5 < 4, seeds=1)
    assert error > 0.3
