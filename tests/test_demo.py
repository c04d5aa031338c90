"""The demo: the pictures inside the package are turned back, and the sheet shows it."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from radialbeams import demo, zoo


@pytest.fixture(scope="module")
def rows() -> list[demo.DemoRow]:
    return list(demo.rows())


def test_every_picture_is_turned_by_every_turn(rows: list[demo.DemoRow]) -> None:
    assert len(demo.SHOWN) >= 3
    assert [(row.picture, row.rotation) for row in rows] == [
        (picture, turned) for picture in demo.SHOWN for turned in demo.TURNS
    ]


def test_the_default_model_is_shown(rows: list[demo.DemoRow]) -> None:
    assert rows[0].model == zoo.DEFAULT


def test_the_turns_are_found(rows: list[demo.DemoRow]) -> None:
    errors = [row.error for row in rows]
    assert np.mean(errors) <= 3
    assert max(errors) < 10


def test_an_error_goes_the_shortest_way_round(rows: list[demo.DemoRow]) -> None:
    blank = rows[0].before
    for turned, found, error in ((358, 3, 5), (3, 358, 5), (0, 180, 180)):
        assert demo.DemoRow("x", "model", turned, found, 1.0, blank, blank).error == error


def test_a_picture_keeps_its_canvas(rows: list[demo.DemoRow]) -> None:
    for row in rows:
        assert row.after.size == row.before.size
        fill = {"black": 0, "white": 255}[demo.SHOWN[row.picture][1]]
        assert np.asarray(row.before)[0, 0].tolist() == [fill] * 3  # turned in from outside


def test_the_sheet_has_two_lines_a_picture(rows: list[demo.DemoRow]) -> None:
    sheet = demo.contact_sheet(rows)
    assert sheet.mode == "RGB"
    assert 600 < sheet.width < 2000 and 400 < sheet.height < 2000
    assert sheet.width == demo.GAP + len(demo.TURNS) * (demo.TILE + demo.GAP)
    shown = np.asarray(sheet).astype(int)
    step = demo.TILE + demo.CAPTION + demo.GAP
    for number, row in enumerate(rows):
        line, column = divmod(number, len(demo.TURNS))
        x = demo.GAP + column * (demo.TILE + demo.GAP)
        for part, tile in enumerate((row.before, row.after)):
            y = demo.GAP + (2 * line + part) * step
            there = shown[y : y + demo.TILE, x : x + demo.TILE]
            small = tile.resize((demo.TILE, demo.TILE), Image.Resampling.LANCZOS)
            inside = np.s_[1:-1, 1:-1]  # a thin line runs around each tile
            np.testing.assert_array_equal(there[inside], np.asarray(small)[inside])
