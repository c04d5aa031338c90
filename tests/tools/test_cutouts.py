"""Cut-outs: GrabCut finds what stands out, and what is no object is refused with a reason."""

from __future__ import annotations

import csv
import importlib
import io
import json
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from conftest import ROOT
from PIL import Image, ImageDraw

from radialbeams.front.classifiers import Classifier
from radialbeams.training.data import load

pytest.importorskip("cv2")
TOOLS = ROOT / "tools"


@pytest.fixture
def cutouts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("cutouts")


def photo(*ellipses: tuple[int, int, int, int], seed: int = 0) -> Image.Image:
    """Red ellipses on a meadow."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 50, (160, 200, 3)) + np.array([20, 130, 30])
    image = Image.fromarray(pixels.astype(np.uint8))
    for box in ellipses:
        ImageDraw.Draw(image).ellipse(box, fill=(220, 40, 40))
    return image


def test_an_object_is_cut_out_at_its_edge(cutouts: ModuleType) -> None:
    found = cutouts.cut_out(photo((50, 40, 150, 120)))
    assert found.mode == "RGBA"
    assert found.width == pytest.approx(160, abs=8) and found.height == pytest.approx(128, abs=8)
    pixels = np.asarray(found)
    inside, corner = pixels[found.height // 2, found.width // 2], pixels[2, 2]
    assert inside[3] == 255 and inside[0] > 180 and corner[3] < 30


@pytest.mark.parametrize(
    ("ellipses", "reason"),
    [
        (((20, 20, 80, 140), (120, 20, 180, 140)), "in pieces"),
        (((95, 75, 107, 87),), "too small or too large"),
    ],
)
def test_what_is_no_single_object_is_refused(
    cutouts: ModuleType, ellipses: tuple[tuple[int, int, int, int], ...], reason: str
) -> None:
    with pytest.raises(cutouts.Unfit, match=reason):
        cutouts.cut_out(photo(*ellipses))


def test_small_holes_are_closed_and_large_ones_stay(cutouts: ModuleType) -> None:
    mask = np.zeros((50, 50), np.uint8)
    mask[5:45, 5:45] = 1
    mask[10:12, 10:12] = 0
    mask[20:40, 20:40] = 0
    found = cutouts.closed(mask)
    assert found[11, 11] == 1 and found[30, 30] == 0 and found[0, 0] == 0
    assert cutouts.solidity(mask) < 0.8 < cutouts.solidity(np.ones((9, 9), np.uint8))


def test_from_photos_to_a_data_set(
    cutouts: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what the classifier names on the backgrounds is kept; the rest is counted."""
    data = tmp_path / "data"
    data.mkdir()
    pictures = {f"{n:04d}_n0000000{n}_thing": photo((50, 40, 150, 120), seed=n) for n in range(3)}
    pictures["0003_n00000003_meadow"] = photo((95, 75, 107, 87))
    _archive(data / "imagenet-1000-samples.zip", pictures, "imagenet-1000-samples", ".jpg")
    scenes = {name: Image.new("RGB", (64, 64), name) for name in ("blue", "grey")}
    scenes = {f"background_samples/{name}": scene for name, scene in scenes.items()}
    cutout = {"foreground_samples/vase/vase1": Image.new("RGBA", (20, 20), "red")}
    _archive(data / "si-score-samples.zip", {**scenes, **cutout}, "si-score")

    said = iter((0, 1, 7))  # the third photo is taken for something else

    def in_turn(images: torch.Tensor) -> torch.Tensor:
        return torch.eye(1000)[next(said)].expand(len(images), -1)

    quick = Classifier("quick", in_turn, size=32)
    monkeypatch.setattr(cutouts, "load_classifier", lambda: quick)
    counts = cutouts.make(data, data / "imagenet-cutouts", None)
    assert counts == {"kept": 2, "not named": 1, "too small or too large": 1}
    out = data / "imagenet-cutouts"
    assert json.loads((out / "counts.json").read_text()) == dict(counts)
    rows = list(csv.DictReader((out / "foreground_classes.csv").open()))
    assert rows == [{"label": "0000", "int": "0"}, {"label": "0001", "int": "1"}]
    assert Image.open(out / "sheet.png").size == (20 * 84, 84)
    images = load("imagenet-cutouts", root=data, size=24)
    assert set(images.groups) == {"0000", "0001"}
    assert images.angles_degrees is not None and set(images.angles_degrees) >= {1.0, 341.0}


def _archive(path: Path, pictures: dict[str, Image.Image], top: str, kind: str = ".png") -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, picture in pictures.items():
            buffer = io.BytesIO()
            picture.save(buffer, Image.registered_extensions()[kind])
            archive.writestr(f"{top}/{name}{kind}", buffer.getvalue())
