"""Views and turning as they are exported: the same pixels in fewer operations."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from onnxruntime import InferenceSession
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from radialbeams.front import exported
from radialbeams.front.affine import Canvas, cosine_and_sine
from radialbeams.front.exported import AT_ONCE, MOST_BANDS, ExportedViews, sources, turned
from radialbeams.front.pose import Pose
from radialbeams.front.sampling import sampled_with_fill
from radialbeams.front.view_geometry import ViewGeometry
from radialbeams.training.export import write_onnx

ANGLES = torch.tensor([0.0, 0.3, math.pi / 2, 2.0, math.pi, 4.4, 6.28])


def noise(count: int, height: int, width: int) -> torch.Tensor:
    return torch.rand(count, 3, height, width, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("canvas", ["same", "expand"])
@pytest.mark.parametrize("size", [(32, 32), (31, 31), (30, 44), (45, 31)])
@pytest.mark.parametrize("fill", [0.0, 0.7])
def test_the_closed_form_turns_as_the_pose_does(
    size: tuple[int, int], canvas: Canvas, fill: float
) -> None:
    images, pose = noise(len(ANGLES), *size), Pose.from_angles(ANGLES, size, canvas=canvas)
    grid = torch.cat(sources(cosine_and_sine(ANGLES), pose.before, pose.after), dim=1)
    closed = sampled_with_fill(images, grid, "bilinear", fill)
    torch.testing.assert_close(closed, pose.apply_images(images, fill), atol=2e-5, rtol=0)
    torch.testing.assert_close(turned(pose, images, fill, exact=True), closed, atol=0, rtol=0)


@pytest.mark.parametrize("size", [(224, 224), (500, 120), (900, 900)])
def test_large_images_are_turned_in_bands_to_the_same_bits(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = cosine_and_sine(ANGLES)
    bands = sources(unit, size, size)
    assert len(bands) == min(MOST_BANDS, size[0] * size[1] // AT_ONCE) > 1
    monkeypatch.setattr(exported, "AT_ONCE", size[0] * size[1])
    (together,) = sources(unit, size, size)
    assert torch.equal(torch.cat(bands, dim=1), together)


class CosineAndSine(nn.Module):
    def forward(self, angles: torch.Tensor) -> torch.Tensor:
        return cosine_and_sine(angles)


def test_cosine_and_sine_of_quarter_turns_are_exact_in_a_file(tmp_path: Path) -> None:
    write_onnx(CosineAndSine(), torch.zeros(1), tmp_path / "unit.onnx", "angles", ("unit",))
    session = InferenceSession(str(tmp_path / "unit.onnx"), providers=["CPUExecutionProvider"])
    for angles in (ANGLES, torch.arange(-4, 5) * (math.pi / 2)):
        (unit,) = session.run(None, {"angles": angles.numpy()})
        torch.testing.assert_close(torch.from_numpy(unit), cosine_and_sine(angles))
    assert set(unit.flatten()) == {-1, 0, 1}


def test_images_left_alone_are_not_turned() -> None:
    images, applied = noise(len(ANGLES), 32, 32), ANGLES > 3
    pose = Pose.from_angles(ANGLES, (32, 32), applied=applied)
    upright = turned(pose, images, 0.0, exact=True)
    torch.testing.assert_close(upright[~applied], images[~applied], atol=2e-5, rtol=0)
    assert (upright[applied] - images[applied]).abs().max() > 0.1


def test_a_quarter_turn_that_falls_between_pixels_is_left_to_the_pose() -> None:
    images, pose = noise(len(ANGLES), 31, 32), Pose.from_angles(ANGLES, (31, 32))
    assert torch.equal(turned(pose, images, 0.0, exact=True), pose.apply_images(images))


@pytest.mark.parametrize("parent_size", [None, 64])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(96, 96), (96, 131), (97, 50), (20, 20)])
def test_views_made_in_bands_are_the_same(
    size: tuple[int, int], channels: int, parent_size: int | None
) -> None:
    geometry, images = ViewGeometry(28, channels, parent_size), noise(2, *size)
    exported = ExportedViews.of(geometry, size)
    torch.testing.assert_close(exported(images), geometry(images), atol=2e-6, rtol=0)
    assert type(geometry) is ViewGeometry
    assert (type(exported) is ExportedViews) == (parent_size is not None)


def test_views_made_in_bands_take_half_of_the_products() -> None:
    geometry, images = ViewGeometry(79, 3, 176), noise(1, 224, 224)
    exported = ExportedViews.of(geometry, (224, 224))
    with FlopCounterMode(display=False) as plain:
        geometry(images)
    with FlopCounterMode(display=False) as banded:
        exported(images)
    assert banded.get_total_flops() < 0.5 * plain.get_total_flops()
