"""`reproduce downstream` from data to figures, with a classifier that is quick and small data."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import beams_of
from PIL import Image

from radialbeams.front.accuracy import LINES, tally
from radialbeams.front.classifiers import Classifier, load_classifier
from radialbeams.reproduce import downstream, downstream_sets
from radialbeams.reproduce.runner import command, reproduce
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.training.data import DataNotFound, ImageSet

rng = np.random.default_rng(0)
# As many as it takes for some to be held out.
CUTOUTS = range(12)


def picture(size: tuple[int, int], kind: str, mode: str = "RGB") -> bytes:
    """Brighter above, and no two alike."""
    width, height = size
    pixels = rng.integers(0, 90, (height, width, len(mode)), dtype=np.uint8)
    pixels[: height // 2, :, :3] += rng.integers(60, 160, 3, dtype=np.uint8)
    if mode == "RGBA":
        pixels[..., 3] = 255
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a little of every set."""
    top = tmp_path_factory.mktemp("data")
    files: dict[str, dict[str, bytes]] = {
        "coil-100.zip": {
            f"coil-100/obj{o}__{5 * v}.png": picture((128, 128), "PNG")
            for o in range(1, 5)
            for v in range(8)
        },
        "imagenet-1000-samples.zip": {
            f"imagenet-1000-samples/{n:04d}_n0000000{n}_thing.jpg": picture((80, 64), "JPEG")
            for n in range(3)
        },
        "si-score-samples.zip": {
            "si-score/background_samples/sky.jpg": picture((64, 64), "JPEG"),
            **{
                f"si-score/foreground_samples/{name}/{name}1.png": picture((40, 50), "PNG", "RGBA")
                for name in ("koala", "vase", "zebra")
            },
        },
        "imagenet-cutouts.zip": {
            "background_samples/sky.jpg": picture((64, 64), "JPEG"),
            "foreground_classes.csv": b"label,int\n"
            + b"".join(b"%04d,%d\n" % (n, n) for n in CUTOUTS),
            **{
                f"foreground_samples/{n:04d}/thing{n}.png": picture((40, 50), "PNG", "RGBA")
                for n in CUTOUTS
            },
        },
    }
    for name, members in files.items():
        with zipfile.ZipFile(top / name, "w") as archive:
            for path, data in members.items():
                archive.writestr(path, data)
    return top


@pytest.fixture(autouse=True)
def quick_classifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean colour of eight rows, and the rest of the 1,000 never."""

    def scores(images: torch.Tensor) -> torch.Tensor:
        rows = images.unflatten(2, (8, -1)).mean((3, 4)).flatten(1)  # (N, 24)
        return torch.nn.functional.pad(rows, (0, 976), value=-9)

    monkeypatch.setattr(
        downstream, "load_classifier", lambda *_: Classifier("rows", scores, size=32)
    )


@pytest.fixture(scope="module")
def settings(root: Path, tmp_path_factory: pytest.TempPathFactory) -> ReproduceSettings:
    return ReproduceSettings(
        quick=True, data=root, out=tmp_path_factory.mktemp("out"), devices="cpu"
    )


@pytest.mark.long
def test_from_data_to_figures(settings: ReproduceSettings) -> None:
    files = reproduce("downstream", settings)
    names = {path.name for path in files}
    assert names == {
        "downstream.json",
        *(f"downstream{part}.{kind}" for part in ("", "-table") for kind in ("png", "svg")),
    }
    found: dict[str, Any] = json.loads(files[0].read_text())
    assert set(found["paper"]) <= set(found["ours"])
    sets = found["data"]["sets"]
    assert set(sets) == {"si-score", "si-score-by-cut-out", "cut-outs", "imagenet", "coil100"}
    for one in sets.values():
        assert set(one["lines"]) == set(one["uniform"]) == set(LINES)
        for values in one["lines"].values():
            assert len(values) == len(one["angles"])
            assert all(0 <= value <= 1 for value in values)
    assert len(sets["coil100"]["angles"]) == 18
    assert sets["coil100"]["lost_upright"]["abstain"] <= sets["coil100"]["lost_upright"]["ring"]


def test_the_recipe_is_the_papers() -> None:
    recipe = downstream_sets.training_of(
        downstream_sets.OBJECTS["si-score"], ReproduceSettings()
    ).recipe
    assert (beams_of(recipe.model).beam_length, recipe.model.view_size) == (91, 224)
    assert (recipe.steps, recipe.prior, recipe.group) == (8192, "off", "so2")
    assert recipe.model.architecture == "lstm"


def test_missing_sets_are_left_out_and_named(root: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    name = "imagenet-1000-samples.zip"
    (tmp_path / "data" / name).write_bytes((root / name).read_bytes())
    settings = ReproduceSettings(
        quick=True, data=tmp_path / "data", out=tmp_path / "out", devices="cpu"
    )
    assert downstream_sets.trainings(settings) == []
    found = downstream.run(settings, {})
    assert "Expected si-score-rotation as" in found.data["sets"]["si-score"]["missing"]
    assert "bic" not in found.data["sets"]["imagenet"]["uniform"]
    assert "nothing to compare with the paper's" in found.why
    with pytest.raises(DataNotFound, match="Expected coil100 as"):
        downstream.run(ReproduceSettings(quick=True, data=tmp_path, devices="cpu"), {})


def test_a_class_without_an_index_is_an_error(settings: ReproduceSettings, root: Path) -> None:
    images = ImageSet("x", torch.zeros(1, 3, 2, 2, dtype=torch.uint8), ("a",), ("gnu",), (1.0,))
    with pytest.raises(ValueError, match=r"in foreground_classes\.csv; missing: gnu"):
        downstream_sets.labels_of(images, "si-score-rotation", settings)


def test_masked_images_have_no_corners() -> None:
    images = downstream_sets.masked(torch.ones(1, 3, 20, 20), 0.5)
    assert images[0, 0, 0, 0] == 0.5 and images[0, 0, 10, 10] == 1


def test_the_command_names_the_classifier() -> None:
    settings = ReproduceSettings(quick=True, classifier="mine.onnx")
    expected = "radialbeams reproduce downstream --quick --classifier mine.onnx"
    assert command("downstream", settings) == expected


def test_real_coil_is_classified_upright(real: Callable[..., ImageSet], tmp_path: Path) -> None:
    """The bar in small: with `ring.coil100` within a hair of the ceiling."""
    real("coil100", limit=1)
    settings = ReproduceSettings(quick=True, devices="cpu")
    classifier = load_classifier()
    task = downstream_sets.coil_task(settings, classifier, torch.device("cpu"), lambda *_: None)
    found = tally(task, torch.arange(16), torch.linspace(0.3, 6, 16))
    assert found.errors()["ring"]["mean"] < 2
    assert found.errors()["bic"]["mean"] < 5
    assert abs(found.accuracy("ring") - found.accuracy("ceiling")) <= 2 / 16


def test_photos_that_ring_was_trained_on_are_left_out() -> None:
    keys = ("n02105505", "n01443537", "n02087394")
    images = ImageSet("imagenet-samples", torch.zeros(3, 3, 8, 8, dtype=torch.uint8), keys, keys)
    assert downstream_sets.unseen_by_ring(images).keys == ("n01443537",)
    assert downstream._training_overlap({"left_out": 17}).startswith("17 more photos are left out")
    assert downstream._training_overlap({}).startswith("17 of the photos are also in Stanford Dogs")
