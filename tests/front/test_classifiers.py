"""Classifiers: the one of the package, and any from a file, all taking images in [0, 1]."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from radialbeams.demo import PICTURES
from radialbeams.front.classifiers import Classifier, load_classifier
from radialbeams.training.export import write_onnx


class Small(nn.Module):
    """The mean of each channel, times 1, 2 and 3."""

    def forward(self, images: Tensor) -> Tensor:
        return images.mean((2, 3)) * torch.tensor([1.0, 2.0, 3.0])


def images(count: int = 3, size: int = 224) -> Tensor:
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(0))


def test_efficientnet_names_the_rocket_and_prints_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    picture = Image.open(PICTURES / "rocket.webp").convert("RGB").resize((224, 224))
    rocket = torch.from_numpy(np.array(picture)).permute(2, 0, 1)[None] / 255
    first, second = load_classifier()(rocket)[0].topk(2).indices.tolist()
    assert 657 in (first, second)  # a missile
    assert capsys.readouterr().out == ""


def test_a_file_of_torch(tmp_path: Path) -> None:
    batch = torch.export.Dim("batch")
    program = torch.export.export(Small(), (images(),), dynamic_shapes=({0: batch},))
    torch.export.save(program, tmp_path / "mine.pt2")
    found = load_classifier(tmp_path / "mine.pt2")(images(5))
    torch.testing.assert_close(found, Small()(images(5)))


def test_a_file_of_onnx_says_its_own_size(tmp_path: Path) -> None:
    write_onnx(Small(), images(1, 96), tmp_path / "mine.onnx", "images", ("scores",))
    classifier = load_classifier(tmp_path / "mine.onnx")
    assert classifier.size == 96
    torch.testing.assert_close(classifier(images(40, 96)), Small()(images(40, 96)))
    with pytest.raises(ValueError, match=r"takes images \(N, 3, 96, 96\); got \(3, 3, 224, 224\)"):
        classifier(images())


def test_a_file_that_is_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Expected efficientnet-lite0, or the path .* 'resnet'"):
        load_classifier("resnet")
    (tmp_path / "mine.pth").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"an .onnx or .pt2 file; got mine.pth"):
        load_classifier(tmp_path / "mine.pth")


def test_nothing_has_no_scores() -> None:
    assert len(Classifier("none", lambda x: x)(images(0))) == 0
