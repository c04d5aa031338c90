"""The cache of decoded images: whole or not there, checked, and the same as decoding again."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from radialbeams.training.__main__ import main
from radialbeams.training.data import cache, decoding, load


def photo(seed: int, size: tuple[int, int] = (40, 30)) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(pixels)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "photos-of-mine"
    folder.mkdir()
    for number in range(12):
        photo(number).save(folder / f"image{number}.png")
    return folder


def built(place: Path, folder: Path, **options: int) -> list[str]:
    return [name for name, _ in cache.build(place, folder, size=16, **options)]


def test_a_cache_holds_what_the_folder_holds(place: Path, tmp_path: Path) -> None:
    built(place, tmp_path / "cache")
    for split in ("train", "test", "all"):
        found = cache.read(tmp_path / "cache", "mine", split=split)
        expected = load(place, split=split, size=16)
        assert found.keys == expected.keys
        assert (found.images == expected.images).all()


def test_an_archive_is_read_as_its_folder_is(place: Path, tmp_path: Path) -> None:
    archive = tmp_path / "shard.tar"
    with tarfile.open(archive, "w") as tar:
        for path in sorted(place.iterdir()):
            tar.add(path, path.name)
    built(place, tmp_path / "folder")
    built(archive, tmp_path / "archive")
    one, other = (cache.read(tmp_path / name, "mine") for name in ("folder", "archive"))
    assert one.keys == other.keys
    assert (one.images == other.images).all()


def test_processes_read_what_threads_read(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(place, tmp_path / "threads")
    monkeypatch.setattr(decoding, "MANY", 1)
    built(place, tmp_path / "processes")
    one, other = (cache.read(tmp_path / name, "mine") for name in ("threads", "processes"))
    assert (one.images == other.images).all()


def test_a_squashed_photo_is_seen_as_it_was(tmp_path: Path) -> None:
    """A circle that was squashed to an ellipse is a circle again."""
    folder = tmp_path / "squashed"
    folder.mkdir()
    y, x = np.mgrid[:48, :96]
    circle = ((x - 47.5) ** 2 + (y - 23.5) ** 2 < 18**2).astype(np.uint8) * 255
    Image.fromarray(circle).convert("RGB").resize((64, 64)).save(folder / "0007.png")
    (folder / "sizes.csv").write_text("id,width,height\n0007,96,48\n")
    built(folder, tmp_path / "cache")
    seen = cache.read(tmp_path / "cache", "mine").images[0, 0].float() > 127
    assert abs(int(seen.any(0).sum()) - int(seen.any(1).sum())) <= 1
    assert 10 <= int(seen.any(0).sum()) <= 14  # 36 of 48 pixels, seen at 16


def test_one_in_so_many_is_held_out_by_its_name_alone() -> None:
    from hashlib import sha256

    keys = [f"{number:012d}" for number in range(2000)]
    chosen = [key for key in keys if cache.held_out(key, 50)]
    assert 20 <= len(chosen) <= 60
    assert all(int(sha256(key.encode()).hexdigest(), 16) % 50 == 0 for key in chosen)


def test_unreadable_files_are_named_and_left_out(place: Path, tmp_path: Path) -> None:
    (place / "image3.png").write_bytes(b"no image")
    (_, index), *_ = cache.build(place, tmp_path / "cache", size=16)
    assert index.problems == {"image3.png": "not an image"}
    assert "image3" not in cache.read(tmp_path / "cache", "mine").keys


def test_a_part_that_was_killed_is_made_again_and_a_whole_one_is_not(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "PART", 5)
    folder = tmp_path / "cache"
    names = built(place, folder)
    assert len(names) == 3
    whole = (folder / f"{names[0]}.bytes").stat().st_mtime_ns
    (folder / f"{names[1]}.json").unlink()  # killed before its index
    (folder / f"{names[1]}.bytes").write_bytes(b"half")
    assert built(place, folder) == names
    assert (folder / f"{names[0]}.bytes").stat().st_mtime_ns == whole
    assert len(cache.read(folder, "mine")) == 12


def test_damaged_bytes_are_refused(place: Path, tmp_path: Path) -> None:
    (name,) = built(place, tmp_path / "cache")
    path = tmp_path / "cache" / f"{name}.bytes"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(cache.DamagedCache, match="does not match the sha256 in its index"):
        cache.read(tmp_path / "cache", "mine")


def test_a_folder_without_a_cache_is_refused_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"python -m radialbeams.training.data.cache PLACE CACHE"):
        cache.read(tmp_path, "mine")


def test_images_of_two_sizes_are_refused(place: Path, tmp_path: Path) -> None:
    list(cache.build(place, tmp_path / "cache", size=16))
    other = place.rename(tmp_path / "others")
    list(cache.build(other, tmp_path / "cache", size=20))
    with pytest.raises(ValueError, match="images of several shapes"):
        cache.read(tmp_path / "cache", "mine")


def test_a_limit_takes_images_from_everywhere(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "PART", 5)
    built(place, tmp_path / "cache")
    found = cache.read(tmp_path / "cache", "mine", limit=3)
    whole = cache.read(tmp_path / "cache", "mine")
    assert found.keys == whole.keys[::4]
    assert (found.images == whole.images[::4]).all()


def test_a_run_trains_on_a_cache(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    list(cache.build(place, tmp_path / "cache", size=32, every=3))
    recipe = tmp_path / "recipe.json"
    model = {"architecture": "convolutional", "variant": "lite0", "view_size": 32, "num_bins": 8}
    values = {"data": "photos", "parent_size": 32, "protocol": "leakfree", "sigma": 1.1}
    recipe.write_text(json.dumps({**values, "model": model, "batch": 2, "steps": 9}))
    data, out = f"cache:{tmp_path / 'cache'}", str(tmp_path / "run")
    options = ["--steps", "1", "--validate-every", "1", "--half", "--devices", "cpu"]
    assert main([str(recipe), "--data", data, "--out", out, *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "held_out" in json.loads(lines[-1])
    assert (tmp_path / "run/half.safetensors").stat().st_size < 9_000_000


def test_a_cache_may_be_built_without_block_grids(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    slope = np.linspace(60, 190, 64)[:, None, None] + rng.normal(0, 6, (64, 64, 3))
    (tmp_path / "photos").mkdir()
    Image.fromarray(slope.astype(np.uint8)).save(tmp_path / "photos" / "a.jpg", quality=30)
    options: dict[str, dict[str, Any]] = {
        "plain": {},
        "without": {"deblock": True},
        "device": {"deblock": True, "device": torch.device("cpu")},
    }
    for name, chosen in options.items():
        list(cache.build(tmp_path / "photos", tmp_path / name, size=64, **chosen))
    plain, without, device = (cache.read(tmp_path / name, "photos") for name in options)
    assert (device.images.float() - without.images.float()).abs().mean() < 1.5
    assert plain.keys == without.keys
    assert not torch.equal(plain.images, without.images)
    assert (plain.images.float() - without.images.float()).abs().mean() < 8
