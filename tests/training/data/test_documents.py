"""Rendered pages: the same page for the same numbers, upright, and varied."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import numpy as np
import pytest
from PIL import Image, ImageFont

from radialbeams.training.data import cache
from radialbeams.training.data.documents import Material, render
from radialbeams.training.data.documents.pool import (
    DOCUMENT,
    HAS_UP,
    LAYOUTS,
    PHOTO_EVERY,
    _levelled_again,
    create_pool,
    fill,
    open_pool,
)
from radialbeams.training.data.documents.squares import write_squares


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    """One font and one text are enough to draw every layout."""
    folder = tmp_path_factory.mktemp("material")
    (folder / "fonts" / "sans").mkdir(parents=True)
    (folder / "texts").mkdir()
    (folder / "drawings").mkdir()
    font = ImageFont.load_default(12)
    assert isinstance(font, ImageFont.FreeTypeFont)
    data = font.path.getvalue() if hasattr(font.path, "getvalue") else Path(font.path).read_bytes()
    (folder / "fonts" / "sans" / "default.ttf").write_bytes(data)
    lines = [f"the quick brown fox number {k} jumps over the lazy dog" for k in range(30)]
    (folder / "texts" / "latin.txt").write_text("\n".join(lines), encoding="utf-8")
    drawing = Image.new("LA", (40, 60), (90, 255))
    drawing.save(folder / "drawings" / "box.png")
    return Material(folder)


def test_a_page_follows_from_seed_and_number(material: Material) -> None:
    first, again = render(material, 3, 11), render(material, 3, 11)
    assert np.array_equal(first.pixels, again.pixels)
    assert (first.kind, first.layout) == (again.kind, again.layout)


def test_other_numbers_and_seeds_give_other_pages(material: Material) -> None:
    page = render(material, 3, 11).pixels
    for other in (render(material, 3, 12).pixels, render(material, 4, 11).pixels):
        assert page.shape != other.shape or not np.array_equal(page, other)


def test_every_layout_is_drawn_and_has_a_place_in_the_pool(material: Material) -> None:
    seen = {}
    for number in range(500):
        page = render(material, 1, number)
        assert page.pixels.dtype == np.uint8
        assert page.pixels.ndim == 2
        seen[page.layout] = page
        if len(seen) == len(LAYOUTS) - 1:
            break
    assert set(seen) == set(LAYOUTS) - {"photo"}
    assert not seen["blank"].has_up
    assert seen["receipt"].has_up


def test_a_sheet_of_four_directions_looks_the_same_after_a_quarter_turn(material: Material) -> None:
    from radialbeams.training.data.documents.sheet import Sheet
    from radialbeams.training.data.documents.without_up import any_way

    sheet = Sheet(material, Random(0), (200, 200), 255, 0)
    any_way(sheet, "latin")
    pixels = np.asarray(sheet.image)
    assert pixels.min() < 128
    assert np.array_equal(pixels, np.rot90(pixels))


def test_a_pool_fills_resumes_and_is_the_same_for_any_number_of_workers(
    material: Material, tmp_path: Path
) -> None:
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    for folder in (alone, shared):
        create_pool(folder, 6, 64, seed=5)
    fill(alone, material.folder, (), seed=5, worker=0, workers=1)
    fill(shared, material.folder, (), seed=5, worker=1, workers=2)
    assert len(open_pool(shared).ready()) == 3
    fill(shared, material.folder, (), seed=5, worker=0, workers=2)
    one, two = open_pool(alone), open_pool(shared)
    assert len(one.ready()) == 6
    assert np.array_equal(one.pages, two.pages)
    assert np.array_equal(one.marks, two.marks)


def test_photos_are_no_documents(material: Material, tmp_path: Path) -> None:
    photo = tmp_path / "photo.jpg"
    Image.effect_noise((80, 60), 50).save(photo)
    create_pool(tmp_path / "pool", PHOTO_EVERY, 64, seed=0)
    fill(tmp_path / "pool", material.folder, (str(photo),), seed=0, worker=0, workers=1)
    flags = open_pool(tmp_path / "pool").marks[:, 0]
    assert not flags[PHOTO_EVERY - 1] & DOCUMENT
    assert (flags[:9] & DOCUMENT).any()
    assert flags[PHOTO_EVERY - 1] & HAS_UP


def test_figures_show_photos_where_there_are_some(material: Material, tmp_path: Path) -> None:
    folder = tmp_path / "material"
    shutil.copytree(material.folder, folder)
    assert material.photo(Random(0)) is None
    (folder / "photos").mkdir()
    Image.new("RGB", (90, 60), (40, 200, 90)).save(folder / "photos" / "green.jpg")
    photo = Material(folder).photo(Random(0))
    assert photo is not None and photo.mode == "L" and photo.size == (90, 60)


def test_a_page_that_was_rotated_and_levelled_again_is_still_upright() -> None:
    page = Image.new("L", (300, 200), 255)
    page.paste(128, (30, 30, 270, 60))  # a heading near the top
    for number in range(6):
        image = _levelled_again(page, Random(number))
        rows, columns = np.nonzero(np.abs(np.asarray(image).astype(int) - 128) < 20)
        assert image.height > page.height
        assert np.median(rows) - image.height / 2 == pytest.approx(45 - 100, abs=4)
        assert np.std(columns) > 3 * np.std(rows)  # it lies level


def test_another_pool_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    create_pool(tmp_path, 4, 32, seed=0)
    with pytest.raises(ValueError, match="Use a new folder"):
        create_pool(tmp_path, 5, 32, seed=0)


def test_a_folder_without_material_is_refused(material: Material, tmp_path: Path) -> None:
    shutil.copytree(material.folder / "texts", tmp_path / "texts")
    with pytest.raises(ValueError, match=r"tools/documents/material\.py"):
        Material(tmp_path)


def test_pages_become_a_part_of_a_cache_without_those_that_have_no_up(
    material: Material, tmp_path: Path
) -> None:
    numbers = range(20)
    write_squares(material, tmp_path, "pages", numbers, size=32, every=5, seed=1)
    held = cache.read(tmp_path, "photos")
    expected = [n for n in numbers if render(material, 1, n).has_up]
    assert 0 < len(expected) < len(numbers)
    assert held.keys == tuple(f"page-1-{n}" for n in expected)
    assert held.images.shape == (len(expected), 3, 32, 32)
    assert len(cache.read(tmp_path, "photos", split="test").keys) < len(expected) / 2
