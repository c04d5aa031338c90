"""The contact sheet: one page with every file, its filters, and nothing from elsewhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from radialbeams import sheet
from radialbeams.batch import Outcome
from radialbeams.sheet import Sheet

PIXEL = "data:image/webp;base64,UklGRg=="


class Seen(HTMLParser):
    """The kinds of the cards in their order, the sources of all pictures, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.kinds: list[str | None] = []
        self.pictures: list[str | None] = []
        self.filters: list[str | None] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.add(tag)
        if tag == "li":
            self.kinds.append(found["class"])
        if tag == "img":
            self.pictures.append(found["src"])
        if tag == "input":
            self.filters.append(found["id"])

    def handle_data(self, data: str) -> None:
        self.text += data


OUTCOMES = [
    Outcome("a.jpg", "o/a.jpg", 40.25, 0.97, 1, "turned", before=PIXEL, after=PIXEL),
    Outcome("<script>alert(1)</script>.jpg", error="It is <b>damaged</b>."),
    Outcome("c.jpg", "o/c.jpg", 3.0, 0.2, 0, "unsure", before=PIXEL, after=PIXEL),
    Outcome("d.jpg", "o/d.jpg", action="exists"),
    Outcome("e\udcff.jpg", "o/e.jpg", 0.3, None, None, "left"),
]


def page(folder: Path, outcomes: list[Outcome]) -> str:
    kept = Sheet("Turned upright")
    for outcome in outcomes:
        kept.add(outcome)
    kept.write(folder / "sheet.html")
    assert [path.name for path in folder.iterdir()] == ["sheet.html"]
    return (folder / "sheet.html").read_text(encoding="utf-8")


def test_every_file_has_its_card_in_order(tmp_path: Path) -> None:
    seen = Seen(page(tmp_path, OUTCOMES))
    assert seen.kinds == ["turned", "failed", "unsure", "exists", "left"]
    assert seen.pictures == [PIXEL] * 4
    assert "40.25° · 97%" in seen.text and "5 files" in seen.text


def test_names_and_errors_are_text_and_nothing_else(tmp_path: Path) -> None:
    seen = Seen(page(tmp_path, OUTCOMES))
    assert "<script>alert(1)</script>.jpg" in seen.text
    assert "It is <b>damaged</b>." in seen.text
    assert seen.tags.isdisjoint({"script", "b", "link", "iframe"})


def test_there_is_a_filter_for_each_kind_that_occurs(tmp_path: Path) -> None:
    filters = Seen(page(tmp_path, OUTCOMES[:3])).filters
    assert filters == ["show-all", "show-turned", "show-unsure", "show-failed"]


def test_too_many_files_for_pictures_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sheet, "PICTURES", 2)
    assert "Pictures are shown for the first 2 files." in Seen(page(tmp_path, OUTCOMES)).text
