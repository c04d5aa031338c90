"""`reproduce light`: spheres, their light in a file, and what the answers follow."""

from __future__ import annotations

import json
import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from radialbeams.reproduce import light, spheres
from radialbeams.reproduce.pretrained import load_pretrained
from radialbeams.reproduce.runner import reproduce
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.reproduce.spheres import POSITIONS, Linear, photographed
from radialbeams.training.data import ImageSet


def chalk(size: int) -> Linear:
    """(9, S, S, 4): a matt sphere by the cosine law, for machines without the renderer."""
    offsets = (np.arange(size) - (size - 1) / 2) / (0.75 * size / 2)
    x, y = np.meshgrid(offsets, -offsets)
    inside = x**2 + y**2 < 1
    z = np.sqrt(np.clip(1 - x**2 - y**2, 0, None))
    found = []
    for position in POSITIONS:
        to_light = np.array([position.x, position.y, 1]) / math.hypot(position.x, position.y, 1)
        lit = np.clip(x * to_light[0] + y * to_light[1] + z * to_light[2], 0, None) * inside
        found.append(np.stack((lit, lit, lit, inside), axis=-1))
    return np.stack(found).astype(np.float32)


def lit_from_the_left(name: str, **options: Any) -> ImageSet:
    """In the place of COIL-100."""
    row = torch.linspace(200, 100, options["size"]).round().byte()
    images = row.expand(4, 3, len(row), len(row)).contiguous()
    return ImageSet(name, images, tuple("abcd"), ("",) * 4)


# --- the spheres ---


def test_positions_are_named_as_the_camera_sees_them() -> None:
    degrees = {position.name: position.degrees for position in POSITIONS}
    assert len(degrees) == 9
    assert degrees["front"] is None
    assert degrees["top"] == 0
    assert degrees["left"] == 90  # counter-clockwise from up
    assert degrees["bottom right"] == -135


def test_light_is_scaled_before_the_curve_and_white_is_the_end() -> None:
    linear = np.full((2, 2, 4), 0.2, dtype=np.float32)
    linear[..., 3] = 1
    pixels = photographed(linear, np.array([1.0, 2.0, 8.0]), np.zeros(3))
    assert pixels.shape == (3, 3, 2, 2)
    assert pixels[:, 0, 0, 0].tolist() == [124, 170, 255]  # sRGB of 0.2, 0.4 and of more than 1


def test_the_ground_has_the_requested_colour_however_bright_the_light() -> None:
    ground = np.array([33, 32, 27])
    pixels = photographed(chalk(16)[0], np.array([0.1, 10.0]), ground)
    assert (pixels[:, :, 0, 0] == ground).all()


def test_the_curve_and_its_inverse() -> None:
    values = np.linspace(0, 1, 11)
    assert spheres.to_linear(spheres.to_srgb(values)) == pytest.approx(values, abs=1e-6)


def test_what_was_rendered_is_not_rendered_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered = []

    def render(position: spheres.LightPosition, size: int, samples: int) -> Linear:
        rendered.append(position.name)
        return chalk(size)[POSITIONS.index(position)]

    monkeypatch.setattr(spheres, "render", render)
    asked = ReproduceSettings(quick=True, out=tmp_path)
    first = spheres.spheres(asked, 16, 4)
    assert np.array_equal(spheres.spheres(asked, 16, 4), first)
    assert rendered == [position.name for position in POSITIONS]


def test_without_the_renderer_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spheres, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"Mitsuba.*\.\[render\]"):
        spheres.render(POSITIONS[0], 8, 1)


@pytest.mark.skipif(find_spec("mitsuba") is None, reason="Mitsuba is not installed")
def test_the_renderer_lights_the_side_where_the_light_is(monkeypatch: pytest.MonkeyPatch) -> None:
    top = POSITIONS[1]
    found = spheres.render(top, 24, 8)
    assert found.shape == (24, 24, 4)
    assert found[:12, :, :3].sum() > 2 * found[12:, :, :3].sum()
    share = found[..., 3].mean()
    assert share == pytest.approx(math.pi / 4 * 0.75**2, abs=0.05)
    monkeypatch.setattr(spheres, "RADIANCE", 2 * spheres.RADIANCE)
    assert spheres.render(top, 24, 8)[..., :3] == pytest.approx(2 * found[..., :3], rel=1e-4)


# --- measuring ---


def test_the_direction_of_coil_s_light_is_that_of_the_mean_picture() -> None:
    found = light.lighting(lit_from_the_left("", size=32))
    assert found["degrees"] == pytest.approx(90)
    assert found["ground"] == [150, 150, 150]


def test_answers_that_turn_with_the_light_are_distinguished_from_those_that_stay() -> None:
    turns = [0.0 if p.degrees is None else math.radians(p.degrees) for p in POSITIONS]
    with_light = light.follows([torch.full((3, 2), turn - 0.5) for turn in turns])
    assert with_light["light"] == pytest.approx(1)
    assert with_light["picture"] == pytest.approx(0, abs=1e-6)
    assert with_light["up"] == pytest.approx(math.degrees(0.5))
    staying = light.follows([torch.full((3, 2), 0.2) for _ in turns])
    assert (staying["light"], staying["picture"]) == (
        pytest.approx(0, abs=1e-6),
        pytest.approx(1),
    )


def test_a_cell_counts_errors_on_the_circle() -> None:
    signed = torch.deg2rad(torch.tensor([[10.0, -10.0], [170.0, -170.0]]))
    found = light.cell_of(signed, None)
    assert found["mean"] == pytest.approx(90)
    assert (found["flips"], found["within_10"]) == (0.5, 0.5)
    assert found["agreement"] == pytest.approx(0, abs=1e-6)
    assert "confidence" not in found


def test_the_ring_takes_the_side_of_the_light_for_a_side_of_the_sphere() -> None:
    scales = np.array([0.5, 1.0])
    found = light.measure(
        load_pretrained("ring.coil100", "cpu"), chalk(128), scales, np.zeros(3), 2
    )
    assert found["follows"]["light"] > 0.9 > 0.1 > found["follows"]["picture"]
    assert {one["position"] for one in found["cells"]} == {p.name for p in POSITIONS}
    assert all(0 <= one["confidence"] <= 1 for one in found["cells"])


def test_the_whole_of_it_without_the_renderer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(light, "spheres", lambda settings, size, samples: chalk(size))
    monkeypatch.setattr(light, "load", lit_from_the_left)
    files = reproduce("light", ReproduceSettings(quick=True, out=tmp_path, devices="cpu"))
    assert [path.name for path in files] == [
        "light.json", "light.png", "light.svg", "light-answers.png", "light-answers.svg",
    ]  # fmt: skip
    record = json.loads(files[0].read_text())
    assert [(row["model"], row["ground"]) for row in record["data"]["rows"]] == [
        (model, ground) for model in ("bic", "ring") for ground in light.GROUNDS
    ]
    assert record["seeds"] == [0, 1]
    # The paper's network by name, so that the page can set it beside the claim.
    assert set(record["paper"]) <= set(record["ours"])
