"""Views: random numbers that follow from their arguments alone, and the paper's rendering."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from radialbeams.nn.angles import TURN
from radialbeams.nn.beams import margin
from radialbeams.nn.rotation import PADDINGS, Padding, disc, pad, rotate
from radialbeams.training.augment import COLUMNS, Augmentation
from radialbeams.training.data import ImageSet
from radialbeams.training.views import (
    GROUPS,
    STREAMS,
    LeakfreeViews,
    PaperViews,
    _blur_kernel,
    as_floats,
    draw_angles,
    draws,
)


def test_draws_do_not_depend_on_what_was_drawn_before() -> None:
    first = draws("angles", 3, 5, 10)
    draws("order", 3, 5, 1000)
    np.random.seed(1)
    torch.manual_seed(1)
    np.testing.assert_array_equal(draws("angles", 3, 5, 10), first)


def test_draws_are_the_same_in_every_version() -> None:
    # Literals: with other numbers an old run could not be repeated.
    known = [0.011546754286331562, 0.24154919656271812, 0.11142585551493822]
    np.testing.assert_allclose(draws("angles", 0, 0, 3), known, rtol=0, atol=1e-12)


def test_every_stream_seed_and_epoch_draws_numbers_of_its_own() -> None:
    keys = [(stream, seed, epoch) for stream in STREAMS for seed in (0, 1) for epoch in (0, 1, 256)]
    seen = {draws(stream, seed, epoch, 4).tobytes() for stream, seed, epoch in keys}
    assert len(seen) == len(keys)


def test_draws_are_uniform_in_the_unit_interval() -> None:
    numbers = draws("augment", 0, 0, (1000, 4))
    assert numbers.shape == (1000, 4)
    assert numbers.min() >= 0 and numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < 0.02


def test_the_angle_of_an_image_does_not_depend_on_how_many_come_after_it() -> None:
    torch.testing.assert_close(
        draw_angles("angles", 0, 2, 100)[:7], draw_angles("angles", 0, 2, 7), rtol=0, atol=0
    )


def test_angles_cover_the_whole_circle_and_stay_in_it() -> None:
    angles = draw_angles("evaluation", 0, 0, 5000)
    assert angles.dtype == torch.float32
    assert angles.min() >= 0 and angles.max() < 2 * math.pi
    assert torch.histc(angles, 8, 0, 2 * math.pi).min() > 5000 / 8 * 0.8


@pytest.mark.parametrize("num_beams", [8, 12, 32])
def test_cyclic_angles_are_multiples_of_the_step_between_beams(num_beams: int) -> None:
    angles = draw_angles("angles", 0, 0, 2000, group="cyclic", num_beams=num_beams).double()
    steps = angles / (2 * math.pi / num_beams)
    assert (steps - steps.round()).abs().max() < 1e-5
    assert set(steps.round().int().tolist()) == set(range(num_beams))


def test_another_group_is_refused_with_the_names() -> None:
    with pytest.raises(ValueError, match=f"one of {', '.join(GROUPS)}; got 'o2'"):
        draw_angles("angles", 0, 0, 2, group="o2")  # type: ignore[arg-type]


@pytest.mark.parametrize("padding", PADDINGS)
def test_render_is_rotate_of_pad(pictures: ImageSet, padding: Padding) -> None:
    parents = pictures.images[:4]
    angles = torch.tensor([0.3, math.pi / 2, 2.0, 5.5])
    padded = pad(parents.float() / 255, margin(28), padding)
    torch.testing.assert_close(
        PaperViews(padding).render(parents, angles),
        rotate(padded, angles, padding=padding),
        rtol=0,
        atol=2e-5,
    )


@pytest.mark.parametrize(("parent", "size"), [(28, 40), (32, 46), (128, 182), (250, 354)])
def test_a_view_is_the_parent_and_twice_the_margin(parent: int, size: int) -> None:
    assert parent + 2 * margin(parent) == size  # the right side is written by hand
    assert PaperViews().size(parent) == size
    blank = torch.zeros(1, 3, parent, parent, dtype=torch.uint8)
    assert PaperViews().render(blank, torch.tensor([1.0])).shape == (1, 3, size, size)


@pytest.mark.parametrize("padding", PADDINGS)
def test_upright_is_render_at_angle_zero_exactly(pictures: ImageSet, padding: Padding) -> None:
    parents, views = pictures.images[:5], PaperViews(padding)
    assert torch.equal(views.upright(parents), views.render(parents, torch.zeros(5)))


def test_render_turns_counter_clockwise_as_displayed(pictures: ImageSet) -> None:
    view = PaperViews().render(pictures.images[:1], torch.tensor([math.pi / 2]))[0]
    side = view.shape[-1]
    assert view[:, :, : side // 2].mean() > 2 * view[:, :, side // 2 :].mean()  # top went left


def test_views_are_in_the_unit_interval(pictures: ImageSet) -> None:
    views = PaperViews("corner").render(pictures.images, torch.linspace(0, 6, 40))
    assert views.dtype == torch.float32
    assert views.min() >= 0 and views.max() <= 1 and views.max() > 0.5


def test_bytes_become_floats_and_floats_stay() -> None:
    given = torch.tensor([0, 51, 255], dtype=torch.uint8)
    torch.testing.assert_close(as_floats(given), torch.tensor([0, 0.2, 1]))
    assert given.tolist() == [0, 51, 255]
    floats = torch.tensor([0.25])
    assert torch.equal(as_floats(floats), torch.tensor([0.25]))


def test_mirror_flips_the_chosen_left_to_right_and_no_other() -> None:
    parents = torch.arange(8, dtype=torch.uint8).reshape(2, 1, 2, 2)
    uniform = torch.full((2, COLUMNS), 0.5)
    uniform[0, 0] = 0.49
    mirrored = Augmentation(mirror=True).mirrored(parents, uniform)
    assert mirrored[0, 0].tolist() == [[1, 0], [3, 2]]
    assert torch.equal(mirrored[1], parents[1])
    assert torch.equal(Augmentation().mirrored(parents, uniform), parents)


def jittered(views: torch.Tensor, strength: float, *gains: float) -> torch.Tensor:
    """With the uniform numbers of brightness and of each channel."""
    uniform = torch.full((len(views), COLUMNS), 0.5)
    uniform[:, 10 : 10 + len(gains)] = torch.tensor(gains)
    return Augmentation(jitter=strength).photometric(views.clone(), uniform, None)


def test_jitter_in_the_middle_of_its_range_changes_nothing(pictures: ImageSet) -> None:
    views = pictures.images[:3].float() / 255
    assert torch.equal(jittered(views, 0.5), views)


def test_jitter_scales_brightness_and_channels_by_its_strength() -> None:
    views = torch.full((1, 3, 2, 2), 0.25)
    torch.testing.assert_close(jittered(views, 0.2, 1.0), views * math.exp(0.2))
    colour = math.exp(0.2 / math.sqrt(2))
    redder = jittered(views, 0.2, 0.5, 1.0, 0.5, 0.0)[0, :, 0, 0]
    torch.testing.assert_close(redder, torch.tensor([0.25 * colour, 0.25, 0.25 / colour]))


def test_jitter_keeps_black_black_and_never_exceeds_white() -> None:
    views = torch.tensor([0.0, 1.0]).reshape(1, 1, 1, 2)
    assert jittered(views, 1.0, 1.0, 1.0).flatten().tolist() == [0.0, 1.0]


def spectral_rho4(views: LeakfreeViews, count: int = 2048) -> float:
    """ρ₄ of a linear reading of the power spectrum of white noise, fitted on half of the views."""
    generator = torch.Generator().manual_seed(0)
    size = views.size(128)
    frequency = torch.fft.fftfreq(size)
    radius = (frequency**2 + frequency[:, None] ** 2).sqrt()
    direction = 4 * torch.atan2(frequency[:, None], frequency.expand(size, size))
    waves = torch.stack((torch.cos(direction), torch.sin(direction)))
    edges = (0.15, 0.25, 0.35, 0.45, 0.55, 0.72)
    bands = [((radius >= low) & (radius < high)).float() for low, high in pairwise(edges)]
    angles, moments = torch.rand(count, generator=generator) * TURN, []
    for part in angles.split(256):
        noise = torch.randint(256, (256, 3, 128, 128), dtype=torch.uint8, generator=generator)
        seen = (views.render(noise, part) - 0.5) * disc(size)
        power = torch.fft.fft2(seen).abs().square().mean(1)
        found = [
            torch.einsum("nhw,khw,hw->nk", power, waves, band) / (power * band).sum((1, 2))[:, None]
            for band in bands
        ]
        moments.append(torch.cat(found, 1))
    features = torch.cat(moments)
    features = features - features.mean(0)
    target = torch.stack((torch.cos(4 * angles), torch.sin(4 * angles)), 1)
    half = count // 2
    weights = torch.linalg.lstsq(features[:half], target[:half]).solution
    answers = torch.nn.functional.normalize(features[half:] @ weights)
    return float((answers * target[half:]).sum(1).mean())


def test_the_spectrum_of_white_noise_does_not_turn_with_the_parent() -> None:
    assert abs(spectral_rho4(LeakfreeViews())) < 0.08  # one deviation of chance is 0.02


def test_the_spectrum_would_turn_if_the_blur_alone_were_gaussian(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("radialbeams.nn.rotation._bicubic_response", torch.ones_like)
    monkeypatch.setattr("radialbeams.training.views._blur_kernel", _blur_kernel.__wrapped__)
    assert spectral_rho4(LeakfreeViews()) > 0.2
