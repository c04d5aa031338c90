"""A decoder and a data set are added by a row of a table and a file of their own, nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from conftest import SIZE, easy_images
from PIL import Image

from radialbeams import Canonicalizer, front
from radialbeams.nn.architectures import ARCHITECTURES
from radialbeams.training import fit as fitting
from radialbeams.training.data import SOURCES, load
from radialbeams.training.runs import complete, measure, plan
from radialbeams.training.weights import load_model
from tests.extending import halves, nearest_beam

STEPS = {"steps": 4, "batch": 8}


def used(run: Path) -> None:
    """What was trained is loaded, and answers by numpy, by torch and as a torch module alike."""
    model, card = load_model(run / "model")
    picture = Image.fromarray(easy_images(1).images[0].permute(1, 2, 0).numpy())
    light = Canonicalizer(run)
    assert light.card == card
    found = light.predict(picture)
    views = torch.from_numpy(light.view(picture))[None]
    away = found.angle_degrees - float(torch.rad2deg(model.angles(views)[0]).detach())
    assert abs((away + 180) % 360 - 180) < 0.1
    module = front.Canonicalizer.from_pretrained(run).for_inference()
    upright, pose = module.canonicalize(torch.rand(2, 3, 40, 40))
    assert upright.shape == (2, 3, 40, 40) and pose.angle.shape == (2,)


def test_a_decoder_is_a_row_and_a_file(
    photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ARCHITECTURES, "nearest-beam", nearest_beam.ROW)
    recipe = plan(str(photo_folder), None, STEPS, {"hidden": 6}, decoder="nearest-beam", size=SIZE)
    assert recipe.model == nearest_beam.NearestBeamConfig.from_dict(recipe.model.to_dict())
    card = complete(recipe, tmp_path / "run", devices="cpu")
    assert (card.network.architecture, card.network.num_bins) == ("nearest-beam", 12)
    assert card.config["hidden"] == 6 and "latent" not in card.config
    assert card.parity is not None and card.parity < 1e-4
    assert measure(tmp_path / "run" / "model", str(photo_folder), seeds=1).evaluation.n > 0
    used(tmp_path / "run")


def test_the_loss_of_a_row_is_what_is_minimised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ARCHITECTURES, "nearest-beam", nearest_beam.ROW)
    recipe = plan("any", None, STEPS, {}, decoder="nearest-beam", size=SIZE)
    fit = fitting.Fit(recipe, easy_images(8), tmp_path, device=torch.device("cpu"))
    assert fit.step().loss is nearest_beam.loss


def test_a_data_set_is_a_row_and_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, "halves", halves.ROW)
    folder = tmp_path / "data" / "halves"
    folder.mkdir(parents=True)
    for key, pixels in enumerate(easy_images(30).images):
        Image.fromarray(pixels.permute(1, 2, 0).numpy()).save(folder / f"half{key}.png")
    images = load("halves", root=tmp_path / "data", split="all")
    assert images.name == "halves" and set(images.groups) == {"half"} and len(images) == 30
    recipe = plan("halves", None, STEPS, {"num_beams": 8, "latent": 16, "lstm_layers": 1})
    assert recipe.parent_size == halves.ROW.size
    fit = fitting.Fit(
        recipe,
        load("halves", root=tmp_path / "data", split="train", size=SIZE),
        tmp_path / "run",
        device=torch.device("cpu"),
    )
    card = fit.run()
    assert card is not None and card.data is not None and card.data.name == "halves"
    found = measure(tmp_path / "run" / "model", "halves", root=tmp_path / "data", seeds=1)
    assert found.data == "halves"


def test_an_unknown_data_set_and_decoder_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="one of lstm, ring, convolutional; got 'tree'"):
        plan("any", None, {}, {}, decoder="tree", size=SIZE)
    with pytest.raises(ValueError, match="coil100"):
        load("halves")
