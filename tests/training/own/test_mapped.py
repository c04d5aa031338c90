"""Training on a mapped file: nothing is copied, nothing differs, and kills change nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import TINY_RING
from folders import plain_folder

from radialbeams.training import step as steps
from radialbeams.training.augment import Augmentation
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import evaluate, predict_with
from radialbeams.training.fit import Fit
from radialbeams.training.own.pixels import read
from radialbeams.training.own.scan import scan
from radialbeams.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("one_thread")
CPU = torch.device("cpu")
RECIPE = Recipe(
    "photos",
    TINY_RING,
    parent_size=54,
    protocol="leakfree",
    batch=8,
    steps=20,
    learning_rate=1e-3,
    schedule="one-cycle",
    average=0.9,
    clip=1.0,
    augmentation=Augmentation(zoom=0.1, jitter=0.2, noise=0.02),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mapped")
    plain_folder(place / "photos", 20)
    return place


@pytest.fixture
def images(place: Path) -> ImageSet:
    found = scan(place / "photos")
    return read(found, range(len(found.images)), 54, 3, place / "cache")


def test_a_mapped_set_trains_to_the_weights_of_one_in_memory(
    images: ImageSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "ROOM_CPU", 0)  # too large to be prepared once and for all
    monkeypatch.setattr("radialbeams.training.fit.RELEASE_EVERY", 3)
    copied = replace(images, images=images.images.clone(), file=None)
    for name, one in (("mapped", images), ("memory", copied)):
        Fit(RECIPE, one, tmp_path / name, device=CPU).run()
    mapped, memory = (tmp_path / name / "model.safetensors" for name in ("mapped", "memory"))
    assert mapped.read_bytes() == memory.read_bytes()


def test_training_and_measuring_do_not_copy_the_images(
    images: ImageSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "ROOM_CPU", 0)
    fit = Fit(RECIPE, images, tmp_path, device=CPU)
    assert fit.step().prepared.data_ptr() == images.images.data_ptr()
    before = images.images.clone()
    measured = evaluate(partial(predict_with, fit.averaged()), images, fit.views, seeds=1)
    assert measured.n == 20
    assert (images.images == before).all()


RUN = """
import json, sys
from pathlib import Path
import torch
from radialbeams.training.fit import Fit
from radialbeams.training.own.pixels import read
from radialbeams.training.own.scan import scan
from radialbeams.training.recipe import Recipe

torch.set_num_threads(1)
folder, cache, run, recipe = map(Path, sys.argv[1:])
found = scan(folder)
images = read(found, range(len(found.images)), 54, 3, cache)
recipe = Recipe.from_dict(json.loads(recipe.read_text()))
fit = Fit(recipe, images, run, device=torch.device("cpu"), log_every=1, save_seconds=0.05)
print("ready", flush=True)
fit.run()
"""


@pytest.mark.long
def test_a_run_killed_at_five_random_moments_ends_with_the_weights_of_an_undisturbed_one(
    place: Path, images: ImageSet, tmp_path: Path
) -> None:
    recipe = replace(RECIPE, steps=400)
    Fit(recipe, images, tmp_path / "whole", device=CPU, log_every=1).run()
    (tmp_path / "recipe.json").write_text(json.dumps(recipe.to_dict()))
    paths = (place / "photos", tmp_path / "cache", tmp_path / "killed", tmp_path / "recipe.json")
    command = [sys.executable, "-c", RUN, *map(str, paths)]
    rng = np.random.default_rng(1)
    for _ in range(5):
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(float(rng.uniform(0, 0.5)))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert not (tmp_path / "killed" / "model.safetensors").exists()
    assert subprocess.run(command, timeout=300).returncode == 0
    whole, killed = (tmp_path / name / "model.safetensors" for name in ("whole", "killed"))
    assert whole.read_bytes() == killed.read_bytes()
