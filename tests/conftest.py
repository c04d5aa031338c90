"""What several test files share: easy pictures, the smallest model, one finished run."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from radialbeams.demo import PICTURES
from radialbeams.nn.bic import BIC, BICConfig
from radialbeams.nn.network import NetworkConfig
from radialbeams.nn.ring_network import RingConfig
from radialbeams.training.data import DataNotFound, ImageSet, load
from radialbeams.training.runs import complete, plan

ROOT = Path(__file__).parents[1]  # of the repository
SIZE = 28
TINY_RING = RingConfig(
    view_size=24,
    num_beams=12,
    beam_length=12,
    epsilon=0,
    sampler="polar",
    stem=8,
    stages=(8,),
    width=16,
    dilations=(1, 2),
)

# Two threads on two busy cores make the smallest models a hundred times slower than one.
torch.set_num_threads(1)


def easy_images(count: int, seed: int = 0, size: int = SIZE) -> ImageSet:
    """Noise under a bright upper half: no one can mistake the angle."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 60, (count, 3, size, size), dtype=np.uint8)
    pixels[:, :, : size // 2] += rng.integers(120, 190, (count, 1, 1, 1), dtype=np.uint8)
    groups = tuple("even" if i % 2 == 0 else "odd" for i in range(count))
    return ImageSet("easy", torch.from_numpy(pixels), tuple(map(str, range(count))), groups)


@cache
def astronaut() -> Image.Image:
    """A small upright photo of a person."""
    with Image.open(PICTURES / "astronaut.webp") as picture:
        return picture.convert("RGB").resize((128, 128), Image.Resampling.LANCZOS)


def face(path: Path, turn: float = 40) -> Path:
    """Saves the photo of a person, turned by that many degrees."""
    path.parent.mkdir(parents=True, exist_ok=True)
    astronaut().rotate(turn, Image.Resampling.BICUBIC).save(path)
    return path


def beams_of(config: NetworkConfig) -> BICConfig | RingConfig:
    """The same configuration, of a network that reads beams."""
    assert isinstance(config, BICConfig | RingConfig)
    return config


def paper_config(config: NetworkConfig) -> BICConfig:
    """The same configuration, of the paper's network."""
    assert isinstance(config, BICConfig)
    return config


@pytest.fixture(scope="session")
def pictures() -> ImageSet:
    return easy_images(40)


@pytest.fixture(scope="session")
def tiny_config() -> BICConfig:
    return BICConfig.for_images(SIZE, num_beams=8, latent=16, lstm_layers=1)


@pytest.fixture
def tiny_model(tiny_config: BICConfig) -> BIC:
    torch.manual_seed(0)
    return BIC(tiny_config).eval()


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Sums come in the same order, so that results are equal to the bit."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that all test processes share: the first that needs it makes it."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    done = shared / f"{name}.done"
    with open(shared / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            make(shared / name)
            done.touch()
    return shared / name


@pytest.fixture(scope="session")
def photo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Upright pictures as files: what `radialbeams train FOLDER` is given."""

    def make(folder: Path) -> None:
        folder.mkdir()
        for key, pixels in enumerate(easy_images(40).images):
            Image.fromarray(pixels.permute(1, 2, 0).numpy()).save(folder / f"photo{key}.png")

    return made_once(tmp_path_factory, "photos", make)


@pytest.fixture(scope="session")
def finished_run(photo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run from start to end with its ONNX export; tests only read it."""
    recipe = plan(
        str(photo_folder),
        None,
        {"steps": 6, "batch": 8, "learning_rate": 1e-3},
        {"num_beams": 8, "latent": 16, "lstm_layers": 1},
        size=SIZE,
    )
    return made_once(
        tmp_path_factory, "tiny", lambda folder: complete(recipe, folder, devices="cpu")
    )


@pytest.fixture
def real() -> Callable[..., ImageSet]:
    """Loads real data, or skips the test and says so."""

    def load_or_skip(name: str, **options: object) -> ImageSet:
        try:
            return load(name, **options)  # type: ignore[arg-type]
        except DataNotFound:
            pytest.skip(f"RADIALBEAMS_DATA ({os.environ.get('RADIALBEAMS_DATA')}) has no {name}.")

    return load_or_skip
