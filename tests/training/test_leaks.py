"""The canary: noise without direction, ρ and its interval, and a check that is able to fail."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from conftest import ROOT
from torch import Tensor

from radialbeams import cli
from radialbeams.nn.rotation import largest_view, rotate
from radialbeams.training import leaks
from radialbeams.training import noise as noise_module
from radialbeams.training.leaks import (
    CANARIES,
    FULL,
    QUICK,
    RENDERINGS,
    Canary,
    CanaryEffort,
    Leak,
    grid,
    make_canary,
    measure_leak,
    renderer,
    rho,
    verdict,
)
from radialbeams.training.noise import JPEG_NOISES, NOISES, Noise, NoiseSource
from radialbeams.training.views import PaperViews

RESULTS = ROOT / "results" / "leaks"
MEASURED_VIEWS = 600_000

CPU = torch.device("cpu")
# Small parents for the sake of time: the canary still reaches ρ₄ = 0.90 on bilinear views.
SHORT: CanaryEffort = {**QUICK, "parent": 40, "views": 6_000, "fourfold": 20.0}
UNEVEN: CanaryEffort = {**QUICK, "views": 65}
INSTANT: CanaryEffort = {**QUICK, "views": 64}


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--quick` on small parents and few test views; the figures then mean nothing."""
    few = {**QUICK, "parent": 40, "test_views": 64}
    monkeypatch.setattr(leaks, "QUICK", few)


# --- ρ -----------------------------------------------------------------------------------------


def test_exact_answers_have_rho_1() -> None:
    assert rho(np.zeros(100), 4) == (1.0, 1.0, 1.0)
    assert rho(np.full(100, 2 * math.pi), 1) == pytest.approx((1.0, 1.0, 1.0))


def test_random_answers_have_rho_0_inside_its_interval() -> None:
    errors = np.random.default_rng(0).uniform(0, 2 * math.pi, 4096)
    for k in (1, 4):
        value, low, high = rho(errors, k)
        assert abs(value) < 0.05 and low < value < high
        assert low < 0 < high
        # The mean of 4,096 cosines of spread √½, to either side 1.96 times.
        assert high - low == pytest.approx(2 * 1.96 * math.sqrt(0.5 / 4096), rel=0.15)


def test_answers_right_modulo_90_degrees_have_rho4_1_and_rho1_0() -> None:
    errors = np.random.default_rng(0).integers(4, size=4096) * (math.pi / 2)
    assert rho(errors, 4)[0] == pytest.approx(1)
    assert abs(rho(errors, 1)[0]) < 0.05


def test_answers_45_degrees_off_have_rho4_minus_1() -> None:
    assert rho(np.full(100, math.pi / 4), 4)[0] == pytest.approx(-1)


# --- noise -------------------------------------------------------------------------------------


def make_noise(kind: Noise, count: int, generator: torch.Generator, parent: int = 128) -> Tensor:
    return NoiseSource(kind, parent, generator)(count)


def test_the_edges_of_a_parent_do_not_know_of_each_other() -> None:
    """Noise shaped on the parent itself would be periodic with it, and a canary would read that."""
    pink = make_noise("pink", 256, torch.Generator().manual_seed(0), parent=64).float() - 127.5
    apart = (pink[..., 0] * pink[..., -1]).mean() / pink.square().mean()
    beside = (pink[..., 0] * pink[..., 1]).mean() / pink.square().mean()
    assert beside > 0.6 and apart < 0.2


@pytest.mark.parametrize("kind", (*NOISES, "jpeg75", "jpeg95"))
def test_noise_is_bytes_around_the_middle(kind: Noise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise_module, "BANK", 256)
    noise = make_noise(kind, 16, torch.Generator().manual_seed(0), parent=64)
    assert noise.shape == (16, 3, 64, 64) and noise.dtype == torch.uint8
    assert abs(noise.float().mean().item() - 127.5) < 4
    assert 40 < noise.float().std().item() < 90


@pytest.mark.parametrize("kind", NOISES)
def test_noise_has_the_same_power_in_every_direction(kind: Noise) -> None:
    noise = make_noise(kind, 256, torch.Generator().manual_seed(0), parent=64)
    assert _directedness(noise.float()) < 0.03


def test_interpolated_noise_has_not() -> None:
    noise = make_noise("white", 256, torch.Generator().manual_seed(0), parent=64).float()
    between = noise + noise.roll(1, -1)
    assert _directedness(between) > 0.5
    assert _directedness(between + between.roll(1, -2)) > 0.06  # as bilinear sampling has it


def _directedness(noise: Tensor) -> float:
    """How far the logarithm of the power swings with twice and four times the direction."""
    window = torch.hann_window(64)
    power = (
        torch.fft.fft2((noise - noise.mean()) * window * window[:, None])
        .abs()
        .square()
        .mean((0, 1))
    )
    frequency = torch.fft.fftfreq(64) * 64
    y, x = torch.meshgrid(frequency, frequency, indexing="ij")
    swings: list[float] = []
    for inner in range(3, 23, 2):
        band = (torch.hypot(x, y) >= inner) & (torch.hypot(x, y) < inner + 2)
        radius, direction = torch.hypot(x, y)[band], torch.atan2(y, x)[band]
        # The power falls within a band too, and that fall is no direction: it is fitted away.
        terms = (radius**0, radius, radius**2, torch.cos(2 * direction), torch.cos(4 * direction))
        fit = torch.linalg.lstsq(
            torch.stack(terms, 1).double(), power[band].log().double()[:, None]
        )
        swings += fit.solution[3:, 0].abs().tolist()
    return max(swings)


def test_noise_follows_from_its_seed() -> None:
    first, again, other = (
        make_noise("pink", 2, torch.Generator().manual_seed(seed), parent=32) for seed in (3, 3, 4)
    )
    assert torch.equal(first, again) and not torch.equal(first, other)


# --- views -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rendering", RENDERINGS)
@pytest.mark.parametrize("parent", (64, 128))
def test_views_have_the_size_that_the_renderer_says(rendering: str, parent: int) -> None:
    render, size = renderer(rendering, parent)  # type: ignore[arg-type]
    views = render(make_noise("white", 3, torch.Generator(), parent), torch.rand(3))
    assert views.shape == (3, 3, size, size)
    assert views.min() >= 0 and views.max() <= 1
    known = {"leakfree": largest_view(parent), "paper": PaperViews().size(parent)}
    assert size == known.get(rendering, parent)


def test_an_unknown_protocol_is_refused_with_the_names() -> None:
    with pytest.raises(ValueError, match=r"one of leakfree, paper, bilinear; got 'nearest'"):
        renderer("nearest")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", CANARIES)
@pytest.mark.parametrize("small", (False, True))
def test_canaries_answer_for_views_of_any_size(kind: Canary, small: bool) -> None:
    for size in (28, 57, 64):
        logits, offsets = make_canary(kind, size, small=small)(torch.rand(2, 3, size, size))
        assert logits.shape == offsets.shape == (2, 64)


# --- canaries ----------------------------------------------------------------------------------


@pytest.mark.long
def test_a_short_canary_reads_nothing_off_leakfree_views() -> None:
    leak = measure_leak("leakfree", "cnn", "white", device=CPU, test_views=2048, **SHORT)
    assert leak.test_views >= 2000
    assert abs(leak.rho4) <= 0.1 and abs(leak.rho1) <= 0.1


@pytest.mark.long
def test_the_same_canary_reads_bilinear_views() -> None:
    leak = measure_leak("bilinear", "cnn", "white", device=CPU, test_views=2048, **SHORT)
    assert leak.test_views >= 2000
    assert leak.rho4 >= 0.5 and leak.rho4_low > 0.4
    assert abs(leak.rho1) <= 0.1  # a square grid gives away no more than the angle modulo 90°


def test_at_least_the_requested_number_of_views_is_used() -> None:
    shown: list[tuple[int, str]] = []
    leak = measure_leak(
        "leakfree",
        "cnn",
        "white",
        device=CPU,
        test_views=32,
        on_progress=lambda seen, text: shown.append((seen, text)),
        **UNEVEN,
    )
    assert leak.views == 96
    assert shown == [(seen, "leakfree cnn white") for seen in (32, 64, 96)]


def test_a_small_canary_on_a_cpu_computes_in_one_thread_and_restores_their_number() -> None:
    """On two busy cores, two threads took eight times as long as one."""
    threads: list[int] = []
    torch.set_num_threads(2)
    try:
        for small in (True, False):
            effort: CanaryEffort = {**QUICK, "views": 2, "batch": 2, "parent": 32, "small": small}
            measure_leak(
                *("leakfree", "cnn", "white"),
                **effort,
                test_views=2,
                device=torch.device("cpu"),
                on_progress=lambda *_: threads.append(torch.get_num_threads()),
            )
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)  # as all tests have it
    assert threads == [1, 2]


def test_a_pipeline_of_ones_own_is_measured_under_its_name() -> None:
    def halved(parents: Tensor, angles: Tensor) -> Tensor:
        return rotate(parents.float() / 255, angles)[:, :, ::2, ::2]

    leak = measure_leak(halved, "cnn", "white", device=CPU, test_views=32, **INSTANT)
    assert leak.rendering == "halved"
    assert renderer(halved, 64) == (halved, 32)


def test_a_pipeline_that_returns_something_else_is_refused() -> None:
    def bytes_again(parents: Tensor, angles: Tensor) -> Tensor:
        return parents

    with pytest.raises(ValueError, match=r"square float views .* it made \(2, 3, 64, 64\) of"):
        measure_leak(bytes_again, "cnn", "white", device=CPU, **INSTANT)


# --- what was measured at full length ------------------------------------------------------------


def _measured() -> list[dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    assert found
    return found


def test_what_was_measured_was_measured_at_length() -> None:
    for found in _measured():
        assert found["views"] >= MEASURED_VIEWS and found["test_views"] >= 2000
        assert found["rho4_low"] <= found["rho4"] <= found["rho4_high"]


def test_leakfree_views_gave_nothing_away() -> None:
    leakfree = [found for found in _measured() if found["rendering"] == "leakfree"]
    assert {found["canary"] for found in leakfree} == set(CANARIES)
    assert {found["noise"] for found in leakfree} >= set(NOISES)
    for found in leakfree:
        if found["noise"] in NOISES:
            assert abs(found["rho4"]) <= 0.05 and abs(found["rho1"]) <= 0.05


def test_no_canary_was_dead() -> None:
    """Networks that always say the same agree on ρ to the last digit."""
    figures = [(found["rho4"], found["rho1"]) for found in _measured()]
    assert len(set(figures)) == len(figures)


@pytest.mark.parametrize("canary", CANARIES)
def test_bilinear_views_gave_the_angle_away(canary: Canary) -> None:
    (found,) = [f for f in _measured() if (f["rendering"], f["canary"]) == ("bilinear", canary)]
    assert found["rho4"] >= 0.9


# --- the command ---------------------------------------------------------------------------------


def _leak(rendering: str, rho4: float) -> Leak:
    return Leak(rendering, "cnn", "white", 96, 4096, rho4, rho4, rho4, 0.01, 0.0, 0.02)


def test_a_quick_run_brings_its_control_and_a_full_one_every_noise() -> None:
    assert grid(None, None, (), quick=True) == [
        (rendering, canary, "white")
        for rendering in ("leakfree", "bilinear")
        for canary in CANARIES
    ]
    assert grid(None, None, (), quick=False) == [
        ("leakfree", canary, noise) for noise in NOISES for canary in CANARIES
    ]
    assert grid("paper", "cnn", ("jpeg75",), quick=True) == [("paper", "cnn", "jpeg75")]


def test_the_verdict_says_what_the_figures_mean() -> None:
    assert "leakfree: the views do not give the angle away" in verdict([_leak("leakfree", 0.02)])
    assert "paper: the views give the angle away" in verdict([_leak("paper", 0.3)])
    assert "too briefly" in verdict([_leak("leakfree", 0.02), _leak("bilinear", 0.3)])
    assert "too briefly" not in verdict([_leak("leakfree", 0.02), _leak("bilinear", 0.7)])


def test_the_command_offers_what_the_canary_knows() -> None:
    assert tuple(cli.training.Rendering) == RENDERINGS
    assert tuple(cli.training.Canary) == CANARIES
    assert tuple(cli.training.Noise) == (*NOISES, *JPEG_NOISES)
    assert FULL["views"] == 600_000


@pytest.mark.usefixtures("instant")
def test_the_command_prints_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["leaks", "--quick", "--canary", "cnn", "--views", "32", "--devices", "cpu", "--json"]
    assert cli.main(quick) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["protocol"] for one in found] == ["leakfree", "bilinear"]
    for one in found:
        assert one["noise"] == "white" and one["canary"] == "cnn" and one["views"] == 32
        assert one["rho4_low"] <= one["rho4"] <= one["rho4_high"]
        assert "rho1" in one


@pytest.mark.usefixtures("instant")
def test_the_command_prints_a_table_and_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--protocol", "bilinear", "--noise", "pink", "--canary", "cnn", "--views", "32"]
    assert cli.main(["leaks", "--quick", *asked, "--devices", "cpu"]) == 0
    head, row, sentence = capsys.readouterr().out.splitlines()
    assert head.split() == ["protocol", "canary", "noise", "ρ₄", "ρ₁", "views"]
    assert row.split()[:3] == ["bilinear", "cnn", "pink"] and row.endswith(" 32")
    assert "too briefly" in sentence


@pytest.mark.parametrize(
    "wrong", (["--protocol", "nearest"], ["--noise", "brown"], ["--canary", "x"], ["--views", "0"])
)
def test_wrong_usage_is_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["leaks", *wrong]) == 2
    assert wrong[0] in capsys.readouterr().err
