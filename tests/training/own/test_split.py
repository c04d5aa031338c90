"""The held-out part: its size, its groups, and near copies on one side."""

from __future__ import annotations

import io
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from folders import picture, plain_folder, save
from PIL import Image

from radialbeams.training.own import split as module
from radialbeams.training.own.scan import Scan, scan
from radialbeams.training.own.split import near_copies, split


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Scan:
    return scan(plain_folder(tmp_path_factory.mktemp("plain"), 40))


def grouped(found: Scan, groups: list[str]) -> Scan:
    images = (replace(one, group=group) for one, group in zip(found.images, groups, strict=True))
    return replace(found, images=tuple(images))


def test_a_fifth_is_held_out_and_the_rest_is_trained_on(plain: Scan) -> None:
    found = split(plain)
    assert len(found.held_out) == 8
    assert sorted(found.train + found.held_out) == list(range(40))
    assert (found.by, found.near_copies, found.warnings) == ("image", 0, ())


def test_the_seed_and_the_names_alone_decide(plain: Scan) -> None:
    assert split(plain) == split(plain)
    assert split(plain, seed=1) != split(plain)
    backwards = replace(plain, images=plain.images[::-1])
    assert {39 - i for i in split(backwards).held_out} == set(split(plain).held_out)


def test_groups_are_never_torn_apart(plain: Scan) -> None:
    found = grouped(plain, [f"person{i % 10}" for i in range(40)])
    parts = split(found)
    train, held_out = (
        {found.images[i].group for i in part} for part in (parts.train, parts.held_out)
    )
    assert parts.by == "group"
    assert (len(train), len(held_out)) == (8, 2)
    assert train.isdisjoint(held_out)


def test_fewer_than_five_groups_are_split_by_image(plain: Scan) -> None:
    parts = split(grouped(plain, [f"kind{i % 4}" for i in range(40)]))
    assert (parts.by, len(parts.held_out)) == ("image", 8)


def test_images_beside_the_groups_stand_alone(plain: Scan) -> None:
    parts = split(grouped(plain, [""] * 20 + [f"person{i % 5}" for i in range(20)]))
    assert parts.by == "group"
    assert len(parts.held_out) == 8


def test_the_smallest_of_large_groups_is_held_out(plain: Scan) -> None:
    sizes = [9, 9, 8, 7, 7]  # a fifth of 40 is 8; shares of 0.1 are smaller than any group
    groups = [f"g{i}" for i, size in enumerate(sizes) for _ in range(size)]
    assert len(split(grouped(plain, groups), share=0.1).held_out) == 7


def copies_of(image: Image.Image) -> list[Image.Image]:
    saved = io.BytesIO()
    image.save(saved, "JPEG", quality=50)
    return [
        Image.open(saved),
        image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS),
        image.point(lambda value: round(0.8 * value + 20)),
    ]


def test_near_copies_are_found_however_they_were_saved(tmp_path: Path) -> None:
    plain_folder(tmp_path, 10, (160, 120))
    for number, copy in enumerate(copies_of(picture(3, (160, 120)))):
        save(copy, tmp_path / f"z{number}.png")
    found = scan(tmp_path)
    units = near_copies(found.images)
    assert units.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 3, 3, 3]
    for seed in range(20):
        parts = split(found, seed=seed)
        assert parts.near_copies == 4
        assert len({3, 10, 11, 12} & set(parts.held_out)) in (0, 4)


def test_a_near_copy_ties_two_groups_together(tmp_path: Path) -> None:
    for number in range(20):
        save(picture(number), tmp_path / f"person{number % 10}" / f"{number}.png")
    save(picture(4).resize((48, 48)), tmp_path / "person7" / "copy.png")
    found = scan(tmp_path)
    for seed in range(20):
        held_out = {found.images[i].group for i in split(found, seed=seed).held_out}
        assert ("person4" in held_out) == ("person7" in held_out)


def test_views_of_a_thing_that_turns_are_not_copies(tmp_path: Path) -> None:
    for number in range(12):
        view = picture(5, (160, 160)).rotate(3 * number, Image.Resampling.BICUBIC)
        save(view.crop((32, 32, 128, 128)), tmp_path / f"{number}.png")
    assert near_copies(scan(tmp_path).images).tolist() == list(range(12))


def test_a_folder_of_near_copies_is_split_with_a_warning(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pixels = np.asarray(picture(1)).astype(int)
    for number in range(20):
        noisy = (pixels + rng.integers(-2, 3, pixels.shape)).clip(0, 255).astype(np.uint8)
        save(Image.fromarray(noisy), tmp_path / f"{number}.png")
    parts = split(scan(tmp_path))
    assert (len(parts.train), len(parts.held_out)) == (16, 4)
    assert parts.warnings[0].startswith("4 of 4 held-out images have a near copy among")


def test_a_share_that_cannot_be_is_refused(plain: Scan) -> None:
    with pytest.raises(ValueError, match="between 0 and 1; got 1"):
        split(plain, share=1)


def test_copies_are_tied_across_tiles(plain: Scan, monkeypatch: pytest.MonkeyPatch) -> None:
    images = plain.images + plain.images[5:9] + plain.images[5:6]
    expected = [*range(40), 5, 6, 7, 8, 5]
    assert near_copies(images).tolist() == expected
    monkeypatch.setattr(module, "TILE", 7)  # several tiles, the last one short
    assert near_copies(images).tolist() == expected


def test_thousands_of_copies_need_little_memory(plain: Scan) -> None:
    tracemalloc.start()
    units = near_copies(plain.images[:1] * 3000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert units.tolist() == [0] * 3000
    assert peak < 100 * 2**20
