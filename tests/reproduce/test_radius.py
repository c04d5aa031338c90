"""The masks of `reproduce radius`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import beams_of

from radialbeams.nn.architectures import Config, build
from radialbeams.nn.bic import BICConfig
from radialbeams.nn.ring_network import RingConfig
from radialbeams.reproduce import radius
from radialbeams.reproduce.pretrained import HeldOut
from radialbeams.reproduce.radius import Mask
from radialbeams.training.data import ImageSet
from radialbeams.training.views import PaperViews

SIZE = 28


@pytest.fixture(params=["lstm", "ring"])
def there(request: pytest.FixtureRequest) -> HeldOut:
    torch.manual_seed(0)
    config: Config = BICConfig.for_images(SIZE, num_beams=8, latent=16)
    if request.param == "ring":
        sizes = {"view_size": config.view_size, "num_beams": 8, "beam_length": SIZE // 2}
        config = RingConfig(**sizes, sampler="polar", stem=8, stages=(8,), width=16)
    pixels = torch.randint(256, (5, 3, SIZE, SIZE), dtype=torch.uint8)
    images = ImageSet("noise", pixels, tuple("abcde"), ("",) * 5)
    return HeldOut("any", build(config).eval(), images, PaperViews(), torch.device("cpu"))


def test_masks_hide_what_they_say() -> None:
    beams = torch.ones(1, 2, 3, 1, 16)
    inner = radius.masked(beams, Mask("inner", 0.0, 0.25), 0.0)
    assert inner[0, 0, 0, 0].tolist() == [0] * 4 + [1] * 12
    outer = radius.masked(beams, Mask("outer", 0.75, 1.0), torch.full((3, 1, 16), 5.0))
    assert outer[0, 1, 2, 0].tolist() == [1] * 12 + [5] * 4


def test_inner_and_outer_masks_leave_every_share_and_bands_fill_the_beam() -> None:
    found = radius.masks(4)
    hidden = {
        part: [m.end - m.start for m in found if m.part == part] for part in ("inner", "outer")
    }
    assert hidden["inner"] == hidden["outer"] == [0.25, 0.5, 0.75]
    bands = [mask for mask in found if mask.part == "band"]
    assert [band.end for band in bands[:-1]] == [band.start for band in bands[1:]]
    assert (bands[0].start, bands[-1].end) == (0, 1)


def test_behind_its_sampling_the_model_is_the_model(there: HeldOut) -> None:
    views = PaperViews().render(there.images.images, torch.linspace(0, 6, 5))
    with torch.inference_mode():
        found = radius.answers(there.model, there.model.beams(views))
        assert torch.equal(found, there.model.angles(views))


def test_the_mean_beam_says_nothing_of_the_angle(there: HeldOut) -> None:
    mean = radius.mean_beam(there, batch=2)
    config = there.model.config
    assert mean.shape == (3, 1, beams_of(config).beam_length)
    every = torch.cat([beams for beams, _ in radius.batches(there, 5)])
    assert torch.allclose(mean[:, 0], every.mean(dim=(0, 1, 3)), atol=1e-5)


def test_the_paper_tables_drop_the_tips_and_the_rule_does_not() -> None:
    def unread(size: int, **changes: Any) -> int:
        return radius.unread(build(BICConfig.for_images(size, num_beams=8, latent=16, **changes)))

    assert (unread(128), unread(250)) == (3, 7)
    assert unread(128, beam_length=50) == 0
    assert radius.unread(build(RingConfig(num_beams=8, sampler="polar"))) == 0


def test_an_unread_tip_can_be_hidden_without_loss() -> None:
    model = build(BICConfig.for_images(128, num_beams=8, latent=16)).eval()
    beams = torch.rand(2, 8, 3, 3, 64)
    with torch.inference_mode():
        tip = radius.masked(beams, Mask("outer", 61 / 64, 1.0), 0.0)
        more = radius.masked(beams, Mask("outer", 60 / 64, 1.0), 0.0)
        assert torch.equal(radius.answers(model, tip), radius.answers(model, beams))
        assert not torch.equal(radius.answers(model, more), radius.answers(model, beams))


def test_profile_verdict_and_figures(there: HeldOut, tmp_path: Path) -> None:
    from radialbeams.reproduce import figures

    one = radius.profile(there, 4)
    assert len(one["cells"]) == (3 + 3 + 8) * 2
    half = radius._half(one, "outer")
    assert (half["start"], half["end"], half["fill"]) == (0.5, 1.0, "mean")
    data = json.loads(json.dumps({"models": dict.fromkeys(radius.PRETRAINED, one)}))
    with figures.style():
        drawn = radius.draw({"data": data})
        assert set(drawn) == {"", "bands"}
        for suffix, figure in drawn.items():
            figures.save(figure, tmp_path / f"radius{suffix}", quick=True)


def halves(**means: float) -> dict[str, Any]:
    """A model's cells with only the halves: inner_mean=… is the error without the inner half."""
    found = []
    for name, mean in means.items():
        part, fill = name.split("_")
        start, end = (0.0, 0.5) if part == "inner" else (0.5, 1.0)
        found.append({"part": part, "fill": fill, "start": start, "end": end, "mean": mean})
    return {"cells": found}


def test_which_half_matters_follows_from_both_fills() -> None:
    outer = halves(inner_mean=3, inner_zero=4, outer_mean=30, outer_zero=40)
    split = halves(inner_mean=3, inner_zero=50, outer_mean=30, outer_zero=40)
    assert radius.more_important_half(outer) == "outer"
    assert radius.more_important_half(split) == "depends on the fill"
    assert radius.sentence({"a": outer}).startswith("As expected")
    assert radius.sentence({"a": outer, "b": split}).startswith("Contrary to the expectation")
    assert radius._sufficient_part(outer, "inner") == "50% of the beam"
    assert radius._sufficient_part(outer, "outer") == "only the whole beam"
