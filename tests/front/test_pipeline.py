"""One ONNX file of canonicaliser and classifier: it computes what torch computes, or is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from conftest import TINY_RING
from torch import Tensor, nn

from radialbeams.front import pipeline, sampling
from radialbeams.front.module import Canonicalizer
from radialbeams.front.pipeline import OUTPUTS, export_pipeline
from radialbeams.nn.architectures import build
from radialbeams.training.export import ParityError

Made = tuple[Path, Canonicalizer, nn.Module, Tensor, float]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The one export of these tests."""
    torch.manual_seed(0)
    front = Canonicalizer(build(TINY_RING), parent_size=54, abstain=0.18).eval()
    classifier = nn.Sequential(nn.Conv2d(3, 4, 5, 3), nn.Flatten(), nn.LazyLinear(5)).eval()
    example = torch.rand(2, 3, 30, 41)
    classifier(example)
    path = tmp_path_factory.mktemp("pipeline") / "whole.onnx"
    return path, front, classifier, example, export_pipeline(front, classifier, path, example)


@pytest.fixture
def exported(made: Made, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Every later export gets the graph of the first."""
    monkeypatch.setattr(pipeline, "_write_graph", lambda whole, to, **_: shutil.copy(made[0], to))
    return made


def assert_equal_to_torch(exported: Made, images: Tensor) -> None:
    path, front, classifier, _, _ = exported
    with torch.inference_mode():
        upright, pose = front.canonicalize(images)
        expected = classifier(upright), pose.angle, pose.confidence, pose.applied
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    actual = session.run(None, {"images": images.numpy()})
    for theirs, ours in zip(actual, expected, strict=True):
        np.testing.assert_allclose(theirs, ours.numpy(), atol=1e-4)


@pytest.mark.parametrize("batch", [1, 2, 9])
def test_the_file_answers_as_torch_does_at_every_batch(made: Made, batch: int) -> None:
    assert made[-1] <= 1e-4
    images = torch.rand(batch, 3, 30, 41, generator=torch.Generator().manual_seed(batch))
    assert_equal_to_torch(made, images)


def test_a_canvas_of_even_sides_is_turned_in_far_fewer_operations(
    made: Made, tmp_path: Path
) -> None:
    _, front, *_ = made
    classifier = nn.Sequential(nn.Conv2d(3, 4, 5, 3), nn.Flatten(), nn.LazyLinear(5)).eval()
    example = torch.rand(2, 3, 30, 42)
    classifier(example)
    difference = export_pipeline(front, classifier, tmp_path / "even.onnx", example)
    assert difference <= 1e-4
    even, odd = (len(onnx.load(path).graph.node) for path in (tmp_path / "even.onnx", made[0]))
    assert even < odd - 60


def test_the_file_says_what_goes_in_and_comes_out(made: Made) -> None:
    session = onnxruntime.InferenceSession(str(made[0]), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    assert given.name == "images" and given.shape[1:] == [3, 30, 41]
    assert isinstance(given.shape[0], str)  # any batch
    assert tuple(output.name for output in session.get_outputs()) == OUTPUTS


@pytest.fixture(scope="module")
def of_any_size(tmp_path_factory: pytest.TempPathFactory) -> Made:
    torch.manual_seed(0)
    front = Canonicalizer(build(TINY_RING), parent_size=54, abstain=0.18).eval()
    layers = nn.Conv2d(3, 4, 5, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5)
    classifier, example = nn.Sequential(*layers).eval(), torch.rand(2, 3, 30, 41)
    path = tmp_path_factory.mktemp("pipeline") / "any.onnx"
    difference = export_pipeline(front, classifier, path, example, any_size=True)
    return path, front, classifier, example, difference


@pytest.mark.long
@pytest.mark.parametrize("size", [(30, 41), (41, 30), (50, 50), (27, 300), (199, 123)])
def test_a_file_may_take_images_of_any_size(of_any_size: Made, size: tuple[int, int]) -> None:
    assert of_any_size[-1] <= 1e-4
    images = torch.rand(2, 3, *size, generator=torch.Generator().manual_seed(0))
    assert_equal_to_torch(of_any_size, images)


def test_any_size_needs_a_classifier_and_a_canvas_that_take_it(made: Made, tmp_path: Path) -> None:
    _, front, classifier, example, _ = made
    with pytest.raises(ValueError, match="this one fails at 39 × 82"):
        export_pipeline(front, classifier, tmp_path / "mine.onnx", example, any_size=True)
    wide = Canonicalizer(build(TINY_RING), parent_size=54, canvas="expand")
    with pytest.raises(ValueError, match='canvas="same"'):
        export_pipeline(wide, classifier, tmp_path / "mine.onnx", example, any_size=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_without_parity_there_is_no_file(exported: Made, tmp_path: Path) -> None:
    _, front, _, example, _ = exported
    other = nn.Sequential(nn.Conv2d(3, 4, 5, 3), nn.Flatten(), nn.LazyLinear(5)).eval()
    other(example)
    with pytest.raises(ParityError, match=r"they differ by .*, so mine\.onnx was not written"):
        export_pipeline(front, other, tmp_path / "mine.onnx", example)
    assert list(tmp_path.iterdir()) == []


def test_an_example_is_a_batch_of_images(made: Made, tmp_path: Path) -> None:
    _, front, classifier, example, _ = made
    for wrong in (example[0], example[:0]):
        with pytest.raises(ValueError, match=r"Expected an example \(N, C, H, W\)"):
            export_pipeline(front, classifier, tmp_path / "mine.onnx", wrong)


def test_the_modules_are_left_as_they_were(exported: Made, tmp_path: Path) -> None:
    _, front, classifier, example, _ = exported
    front.train()
    front.network.eval()  # frozen, as fine-tuning has it
    classifier.train()
    try:
        export_pipeline(front, classifier, str(tmp_path / "mine.onnx"), example)
        assert (tmp_path / "mine.onnx").is_file()
        assert front.training and not front.network.training
        assert all(part.training for part in classifier.modules())
        with pytest.raises(ParityError):
            export_pipeline(front, classifier, tmp_path / "no.onnx", example, tolerance=-1)
        assert classifier.training
    finally:
        front.eval()
        classifier.eval()


def test_the_modules_go_back_to_their_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The meta device stands for a second one; nothing can be copied from it."""
    monkeypatch.setattr(nn.Module, "cpu", lambda module: module.to_empty(device="cpu"))
    whole = nn.Sequential(nn.Linear(2, 2, device="meta"), nn.BatchNorm1d(2))
    with pytest.raises(KeyError), pipeline._ready(whole):
        assert {tensor.device.type for tensor in whole.parameters()} == {"cpu"}
        raise KeyError
    first, second = whole
    assert {tensor.device.type for tensor in first.parameters()} == {"meta"}
    assert {tensor.device.type for tensor in (*second.parameters(), *second.buffers())} == {"cpu"}


class Says(nn.Module):
    def forward(self, images: Tensor) -> dict[str, Tensor]:
        return {"logits": images.mean((-2, -1))}


def test_a_classifier_returns_a_tensor(made: Made, tmp_path: Path) -> None:
    _, front, _, example, _ = made
    with pytest.raises(ValueError, match="classifier that returns one tensor; got dict"):
        export_pipeline(front, Says(), tmp_path / "mine.onnx", example)
    assert list(tmp_path.iterdir()) == []


def test_the_grid_of_an_exported_file_is_that_of_torch() -> None:
    angles = torch.tensor([0.3, 2.0, -1.1])
    cos, sin, shift = angles.cos(), angles.sin(), torch.full((3,), 4.5)
    rows = (torch.stack((cos, sin, shift), dim=-1), torch.stack((-sin, cos, -shift), dim=-1))
    origin = torch.stack(rows, dim=-2)  # (N, 2, 3)
    expected = sampling._sources(origin, (20, 31))
    found = sampling._sources_as_product(origin, (20, 31))
    assert found.shape == expected.shape == (3, 20, 31, 2)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
