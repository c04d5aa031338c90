"""The average over likely turns: its weights, what the classifier sees, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from conftest import TINY_RING, easy_images
from PIL import Image
from torch import Tensor, nn

from radialbeams.demo import PICTURES
from radialbeams.front import Canonicalizer, PosteriorAverage
from radialbeams.nn.architectures import build
from radialbeams.nn.ring_network import RingConfig

BINS = 12
IMAGES = easy_images(3).images / 255  # (3, 3, S, S), the upper half brighter


class Stub(nn.Module):
    """A network that answers (N, BINS) probabilities by a function of the views.

    `off` is the offset of every bin, in bins; the probabilities need not sum to 1.
    """

    config = RingConfig(view_size=24, num_beams=BINS, beam_length=12)

    def __init__(self, answers: Callable[[Tensor], Tensor], off: float = 0.0) -> None:
        super().__init__()
        self.answers, self.off, self.batches = answers, off, list[int]()

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        self.batches.append(len(views))
        probabilities = self.answers(views)
        return probabilities.log(), torch.full_like(probabilities, self.off)


def always(**shares: float) -> Callable[[Tensor], Tensor]:
    """The same for every view: probabilities by angle, as in `at90=0.7`."""
    row = torch.full((BINS,), 1e-9)
    for name, share in shares.items():
        row[int(name.removeprefix("at")) * BINS // 360] = share
    return lambda views: row.expand(len(views), -1)


def average(
    answers: Callable[[Tensor], Tensor],
    classifier: Callable[[Tensor], Tensor] | None = None,
    least: float = 0.05,
    below: float = 0.0,
    off: float = 0.0,
    **options: Any,
) -> PosteriorAverage:
    network = Stub(answers, off)
    front = Canonicalizer(network, parent_size=54, abstain=0.9, **options)  # type: ignore[arg-type]
    as_pixels = classifier or (lambda images: images.flatten(1))
    return PosteriorAverage(
        front, as_pixels, least=least, more_views_below=below, scores="probabilities"
    )


def test_what_the_classifier_says_is_weighed_by_the_posterior() -> None:
    """Its outputs are the pixels here, so the average shows the turned images and their weights."""
    result = average(always(at90=0.7, at270=0.3))(IMAGES)
    expected = 0.7 * torch.rot90(IMAGES, -1, (-2, -1)) + 0.3 * torch.rot90(IMAGES, 1, (-2, -1))
    torch.testing.assert_close(result, expected.flatten(1))


def test_mass_counts_for_the_nearest_quarter_turn_from_the_estimate() -> None:
    pose, weights = average(always(at30=0.6, at60=0.1, at210=0.3)).turns(IMAGES[:1])
    assert torch.rad2deg(pose.angle).round().tolist() == [30, 210]
    torch.testing.assert_close(weights, torch.tensor([0.7, 0.3]))
    torch.testing.assert_close(pose.confidence, torch.tensor([0.6, 0.3]))  # within 10°


def test_unlikely_turns_are_left_out_and_cost_nothing() -> None:
    runs = []

    def classifier(images: Tensor) -> Tensor:
        runs.append(len(images))
        return torch.ones(len(images), 2)

    unsure = always(at0=0.5, at90=0.42, at180=0.04, at270=0.04)
    for least, count in ((0.0, 12), (0.05, 6), (0.45, 3), (1.0, 3)):
        result = average(unsure, classifier, least=least)(IMAGES)
        torch.testing.assert_close(result, torch.ones(3, 2))
        assert runs.pop() == count


def test_only_unsure_images_get_three_more_views() -> None:
    """The first image is bright; for the others, every view points elsewhere."""

    def answers(views: Tensor) -> Tensor:
        sure, unsure = (always(**x)(views) for x in ({"at90": 1.0}, {"at0": 0.6, "at180": 0.4}))
        bright = views.mean((1, 2, 3)) > 0.5
        return torch.where(bright[:, None], sure, unsure)

    images = torch.cat((torch.ones(1, 3, 54, 54), torch.zeros(2, 3, 54, 54)))
    model = average(answers, below=0.8)
    pose, weights = model.turns(images)
    assert model.canonicalizer.network.batches == [3, 2, 2, 2]  # type: ignore[union-attr]
    assert (pose.source == 0).sum() == 1
    # The unsure ones say 0° or 180° in each of four views, so all quarter turns are as likely.
    torch.testing.assert_close(weights[pose.source == 1], torch.full((4,), 0.25))


def test_four_views_that_agree_are_one_answer() -> None:
    """A network that sees the turn: bright above means upright."""

    def answers(views: Tensor) -> Tensor:
        halves = [
            views[..., :12, :].mean((1, 2, 3)),
            views[..., :, :12].mean((1, 2, 3)),
            views[..., 12:, :].mean((1, 2, 3)),
            views[..., :, 12:].mean((1, 2, 3)),
        ]  # brighter above, to the left, below, to the right: turned by 0°, 90°, 180°, 270°
        sure = torch.stack(halves, 1).argmax(1)
        row = torch.full((len(views), BINS), 1e-9)
        return row.scatter(1, sure[:, None] * 3, 0.6).scatter_add(
            1, (sure[:, None] * 3 + 6) % BINS, torch.full((len(views), 1), 0.4)
        )

    images = torch.zeros(1, 3, 54, 54)
    images[..., :20, :] = 1
    for k in range(4):
        pose, weights = average(answers, below=2.0).turns(torch.rot90(images, k, (-2, -1)))
        likeliest = pose.angle[weights.argmax()]
        assert torch.rad2deg(likeliest).round() % 360 == 90 * k
        torch.testing.assert_close(weights.sort().values, torch.tensor([0.4, 0.6]))


def test_an_image_that_is_nearly_upright_stays_as_it_is() -> None:
    """The estimate is 0.6°."""
    for still, stays in ((1.0, True), (0.5, False)):
        result = average(always(at0=1.0), off=0.02, still_degrees=still)(IMAGES)
        assert torch.equal(result, IMAGES.flatten(1)) == stays


@pytest.mark.parametrize("below", [0.0, 2.0], ids=["one view", "four views"])
def test_the_temperature_of_the_card_applies(below: float) -> None:
    shares = always(at0=0.6, at30=0.1, at90=0.2, at180=0.1)
    hot = average(shares, below=below, least=0, temperature=2.0).turns(IMAGES)
    same = average(lambda views: shares(views).sqrt(), below=below, least=0).turns(IMAGES)
    cold = average(shares, below=below, least=0).turns(IMAGES)
    torch.testing.assert_close(hot[0].confidence, same[0].confidence)
    torch.testing.assert_close(hot[1], same[1])
    assert (hot[0].confidence - cold[0].confidence).abs().max() > 0.01


def test_the_confidence_is_that_of_the_canonicaliser() -> None:
    model = average(always(at0=0.7, at30=0.3), spread_degrees=3.0)
    pose, _ = model.turns(IMAGES)
    torch.testing.assert_close(pose.confidence, model.canonicalizer.estimate(IMAGES).confidence)
    without, _ = average(always(at0=0.7, at30=0.3)).turns(IMAGES)
    assert (pose.confidence - without.confidence).abs().max() > 0.01


def test_the_classifier_sees_the_canvas_and_the_fill_of_the_canonicaliser() -> None:
    shown = []

    def classifier(images: Tensor) -> Tensor:
        shown.append(images)
        return torch.ones(len(images), 2)

    average(always(at30=1.0), classifier, canvas="expand", fill=0.25)(IMAGES)
    assert shown[0].shape[-1] > IMAGES.shape[-1]
    assert (shown[0][..., 0, 0] == 0.25).all()


def test_logits_become_probabilities() -> None:
    torch.manual_seed(0)
    front = Canonicalizer(build(TINY_RING), parent_size=54).eval()
    head = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 5))
    model = PosteriorAverage(front, head)
    result = model(IMAGES)
    torch.testing.assert_close(result.sum(1), torch.ones(3))
    result[:, 0].sum().backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None for p in head.parameters())
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in front.parameters())


def test_the_default_model_asks_more_of_an_unsure_picture() -> None:
    """A photo takes one run; noise takes several, and four views."""
    pixels = np.array(Image.open(PICTURES / "rocket.webp").convert("RGB").resize((224, 224)))
    photo = torch.from_numpy(pixels).permute(2, 0, 1)[None] / 255
    torch.manual_seed(0)
    images = torch.cat((torch.rot90(photo, 1, (-2, -1)), torch.rand(1, 3, 224, 224)))
    front = Canonicalizer.from_pretrained()
    model = PosteriorAverage(front, nn.Flatten())
    with torch.inference_mode():
        pose, weights = model.turns(images)
    assert model.more_views_below == 0.8
    (first,) = (pose.source == 0).nonzero().tolist()[0]
    assert math.degrees(pose.angle[first]) == pytest.approx(90, abs=2)
    assert weights[pose.source == 0].max() > 0.95
    assert (pose.source == 1).sum() > 1
    assert weights[pose.source == 1].max() < 0.9


def test_it_says_what_it_needs() -> None:
    ring = Canonicalizer(build(TINY_RING), parent_size=54)
    with pytest.raises(ValueError, match="needs a network that has one, such as the ring"):
        PosteriorAverage(Canonicalizer.from_pretrained("bic.coil100"), nn.Flatten())
    with pytest.raises(ValueError, match="least must lie between 0 and 1; got 2"):
        PosteriorAverage(ring, nn.Flatten(), least=2)
    with pytest.raises(ValueError, match="scores must be one of logits, probabilities"):
        PosteriorAverage(ring, nn.Flatten(), scores="labels")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Expected images of shape"):
        PosteriorAverage(ring, nn.Flatten())(IMAGES[0])
