"""Drawings as squares to train on: none of the test part or like one of it, and none cut off."""

from __future__ import annotations

import tarfile
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image, ImageDraw

from tools.documents import drawn_squares
from tools.documents.material import is_test_drawing


def picture(seed: int) -> Image.Image:
    """A few random discs on a transparent canvas."""
    image, random = Image.new("RGBA", (120, 90)), Random(seed)
    draw = ImageDraw.Draw(image)
    for _ in range(6):
        x, y, radius = random.randint(10, 110), random.randint(10, 80), random.randint(5, 25)
        colour = (*(random.randint(0, 255) for _ in range(3)), 255)
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
    return image


def test_versions_of_a_drawing_share_a_name() -> None:
    versions = ("Cat_01.png", "cat_02.png", "cat.png", "CAT-3.png")
    assert {drawn_squares.version_of(name) for name in versions} == {"cat"}
    assert drawn_squares.version_of("cow_01.png") == "cow"


def test_what_resembles_a_test_drawing_is_left_out(tmp_path: Path) -> None:
    root = tmp_path / "usr/share/openclipart/png/animals"
    root.mkdir(parents=True)
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = [f"{a}{b}.png" for a in letters[:5] for b in letters]
    tested = next(name for name in names if is_test_drawing(name))
    free = [name for name in names if not is_test_drawing(name)][:6]
    picture(0).save(root / tested)
    picture(0).resize((96, 72)).save(root / free[0])  # another size of the test drawing
    for seed, name in enumerate(free[1:], 1):
        picture(seed).save(root / name)
    archive = tmp_path / "squares.tar"
    assert drawn_squares.main([str(tmp_path), str(archive), "--each", "2"]) == 0
    with tarfile.open(archive) as file:
        stored = {member.name for member in file.getmembers()}
    stems = [Path(name).stem for name in free[1:]]
    assert stored == {f"drawing-{stem}-{n}.webp" for stem in stems for n in range(2)}


def test_a_square_shows_the_whole_drawing_on_one_colour() -> None:
    drawing = Image.new("RGBA", (300, 100), (255, 0, 0, 255))
    papers = set()
    for seed in range(40):
        square = drawn_squares.squared(drawing, Random(seed))
        pixels = np.asarray(square).astype(int)
        assert pixels.shape == (drawn_squares.SIDE, drawn_squares.SIDE, 3)
        paper = tuple(pixels[0, 0])
        papers.add(paper)
        drawn = (abs(pixels - pixels[0, 0]).sum(-1) > 60).nonzero()
        height, width = (int(np.ptp(axis)) + 1 for axis in drawn)
        assert abs(width / height - 3) < 0.2
        assert all(axis.min() > 0 and axis.max() < drawn_squares.SIDE - 1 for axis in drawn)
    assert (255, 255, 255) in papers and len(papers) > 10
