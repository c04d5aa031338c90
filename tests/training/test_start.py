"""A run may begin with weights of a network whose settings differ where the weights do not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from radialbeams import zoo
from radialbeams.demo import PICTURES
from radialbeams.nn.architectures import build
from radialbeams.nn.ring_network import RingConfig
from radialbeams.training.recipe import Recipe
from radialbeams.training.runs import card_views
from radialbeams.training.start import begin_with, resampled
from radialbeams.training.weights import load_model

RING = zoo.FOLDER / "ring"  # it has attention by distance


def test_attention_by_distance_is_resampled_around_the_circle() -> None:
    earlier = torch.tensor([[0.0, 3.0, 6.0, 3.0]])  # at 0°, 90°, 180° and 270°
    torch.testing.assert_close(resampled(earlier, 4), earlier)
    expected = torch.tensor([[0.0, 2.0, 4.0, 6.0, 4.0, 2.0]])  # every 60°
    torch.testing.assert_close(resampled(earlier, 6), expected)


def test_a_ring_with_fewer_beams_begins_with_the_estimates_of_the_earlier_one() -> None:
    earlier, card = load_model(RING)
    config = earlier.config
    assert isinstance(config, RingConfig)
    fewer = replace(config, num_beams=config.num_beams - 8)
    recipe = Recipe("photos", fewer, parent_size=card.parent_size, protocol="leakfree")
    model = build(fewer)
    assert begin_with(model, RING, recipe).name == "ring"
    with Image.open(PICTURES / "rocket.webp") as picture:
        pixels = ImageOps.fit(picture.convert("RGB"), (card.parent_size,) * 2)
    parent = torch.from_numpy(np.array(pixels)).permute(2, 0, 1)[None]
    for degrees in (40.0, 90.0, 200.0):
        views = card_views(card).render(parent, torch.tensor([math.radians(degrees)]))
        with torch.inference_mode():
            both = [torch.rad2deg(network.eval().angles(views)) for network in (earlier, model)]
        torch.testing.assert_close(both[0] % 360, both[1] % 360, rtol=0, atol=2)


def test_a_ring_of_other_widths_is_refused() -> None:
    earlier, _ = load_model(RING)
    config = earlier.config
    assert isinstance(config, RingConfig)
    recipe = Recipe("photos", replace(config, width=2 * config.width))
    with pytest.raises(ValueError, match="a different network than the recipe's"):
        begin_with(build(recipe.model), RING, recipe)
