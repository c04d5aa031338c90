"""`reproduce topology`: directions, crossings, strips, and that its words follow the figures."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from radialbeams.nn.bic import BIC, BICConfig
from radialbeams.reproduce import fine_orbit, topology
from radialbeams.training.views import LeakfreeViews

TURNS, BEAMS, LATENT = 64, 16, 6


def band(half_turns: int) -> np.ndarray:
    """A band around a circle whose width rotates by so many half turns on the way round."""
    turn = np.arange(TURNS) * 2 * np.pi / TURNS
    across = np.linspace(-0.1, 0.1, BEAMS)
    tilt = half_turns * turn / 2
    radius = 1 + across * np.cos(tilt)[:, None]
    cloud = np.zeros((TURNS, BEAMS, LATENT), np.float32)
    cloud[..., 0] = radius * np.cos(turn)[:, None]
    cloud[..., 1] = radius * np.sin(turn)[:, None]
    cloud[..., 2] = across * np.sin(tilt)[:, None]
    return cloud


@pytest.mark.parametrize(("half_turns", "turned_over"), [(0, False), (1, True), (2, False)])
def test_only_an_odd_number_of_half_turns_makes_a_moebius_strip(
    half_turns: int, turned_over: bool
) -> None:
    found = fine_orbit.strip(band(half_turns))
    assert found["turned_over"] is turned_over
    assert found["followed"] > 0.9
    assert found["share"] > 0.9


def test_a_circle_does_not_cross_itself_and_an_eight_does() -> None:
    turn = np.arange(256) * 2 * np.pi / 256
    circle = np.stack((np.cos(turn), np.sin(turn)), axis=1).astype(np.float32)
    eight = np.stack((np.cos(turn), np.sin(2 * turn)), axis=1).astype(np.float32)
    near = np.float32(1e-2)
    assert fine_orbit.crossings(circle, circle + near)["crossed"] == 0
    assert fine_orbit.crossings(eight, eight + near)["crossed"] > 0


@torch.inference_mode()
def test_beams_that_see_one_direction_agree_where_nothing_is_interpolated() -> None:
    torch.manual_seed(0)
    model = BIC(BICConfig(view_size=28, beam_length=14, num_beams=4, latent=16)).eval()
    image = torch.randint(0, 256, (3, 64, 64), dtype=torch.uint8)
    views = LeakfreeViews(28)
    cloud = fine_orbit.embeddings(model, views, image, 4, "before", torch.device("cpu"))
    # With four beams at four quarter turns every beam sees every direction to the bit.
    assert cloud.shape == (4, 4, 16)
    spread = np.abs(cloud - cloud[:, :1]).max()
    assert spread < 1e-3 * np.abs(cloud[1:] - cloud[:-1]).max()


def cells(**changes: float) -> dict[str, dict[str, object]]:
    one = {
        "orbits": 9,
        "centre": {},
        "order": {"64": 0.5, "1024": 0.9},
        "circle": 0.2,
        "longest": 0.3,
        "null": 0.2,
        "significant": 0.5,
        "beyond_bootstrap": 0.0,
        "crossed": 0.4,
        "injective": 0.0,
        "nearest": 0.1,
        "width": 0.2,
        "followed": 0.5,
        "turned_over": 0.0,
    }
    return {words: {**one, **changes} for words in ["pretrained", *topology.kinds()]}


def test_the_words_on_a_moebius_strip_follow_the_figures() -> None:
    assert "is no evidence" in topology.sentence(cells())
    assert "there is evidence" in topology.sentence(cells(turned_over=0.4))
