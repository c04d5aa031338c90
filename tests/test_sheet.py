"""The contact sheet: one page with every file, its filters, and nothing from elsewhere."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from html.parser import HTMLParser
from pathlib import Path

import pytest

from radialbeams import sheet
from radialbeams.batch import Outcome
from radialbeams.sheet import ReportSheet

PIXEL = "data:image/webp;base64,UklGRg=="


class Seen(HTMLParser):
    """The kinds of the cards in their order, the sources of all pictures, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.kinds: list[str | None] = []
        self.pictures: list[str | None] = []
        self.filters: list[str | None] = []
        self.data: list[dict[str, str | None]] = []
        self.scripts = 0
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.add(tag)
        if tag == "li":
            self.kinds.append(found["class"])
            self.data.append(found)
        if tag == "img" and "src" in found:  # the dialog's have none yet
            self.pictures.append(found["src"])
        if tag == "input" and found.get("name") == "show":
            self.filters.append(found["id"])
        if tag == "script":
            self.scripts += 1

    def handle_data(self, data: str) -> None:
        self.text += data


TURNED = {"action": "turned", "applied_ccw": 319.75, "applied_by": "angle", "method": "resampled"}
LEFT = {"action": "left", "reason": "upright already"}
OUTCOMES = [
    Outcome("a.jpg", "o/a.jpg", 40.25, 0.97, 1, **TURNED, before=PIXEL, after=PIXEL, dial="0f00"),
    Outcome("<script>alert(1)</script>.jpg", error="It is <b>damaged</b>."),
    Outcome("c.jpg", "o/c.jpg", 357.0, 0.2, 0, "unsure", reason="no up", before=PIXEL),
    Outcome("d.jpg", "o/d.jpg", action="exists"),
    Outcome("e\udcff.jpg", "o/e.jpg", 0.3, None, None, **LEFT),
]


def page(folder: Path, outcomes: list[Outcome]) -> str:
    kept = ReportSheet("Turned upright")
    for outcome in outcomes:
        kept.add(outcome)
    kept.write(folder / "sheet.html")
    assert [path.name for path in folder.iterdir()] == ["sheet.html"]
    return (folder / "sheet.html").read_text(encoding="utf-8")


def test_every_file_has_its_card_in_order(tmp_path: Path) -> None:
    seen = Seen(page(tmp_path, OUTCOMES))
    assert seen.kinds == ["turned", "failed", "no-up", "exists", "upright"]
    assert "40.25° · 97%" in seen.text and "5 files" in seen.text
    assert "turned by −40.25°" in seen.text  # what was done about it
    assert "−3.00° · 20%" in seen.text  # and not 357°


def test_a_file_in_which_nothing_changed_is_shown_once(tmp_path: Path) -> None:
    assert Seen(page(tmp_path, OUTCOMES)).pictures == [PIXEL] * 3


def test_names_and_errors_are_text_and_nothing_else(tmp_path: Path) -> None:
    made = page(tmp_path, OUTCOMES)
    seen = Seen(made)
    assert "<script>alert(1)</script>.jpg" in seen.text
    assert "It is <b>damaged</b>." in seen.text
    assert seen.tags.isdisjoint({"b", "link", "iframe"})
    assert seen.scripts == 1


def test_only_the_script_of_the_package_may_run(tmp_path: Path) -> None:
    made = page(tmp_path, OUTCOMES)
    script = made.split("<script>")[1].split("</script>")[0].encode()
    digest = b64encode(hashlib.sha256(script).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in made
    assert "default-src 'none'" in made


def test_the_script_gets_what_it_sorts_by_and_the_path_as_it_is(tmp_path: Path) -> None:
    first, *_, last = Seen(page(tmp_path, OUTCOMES)).data
    assert (first["data-confidence"], first["data-angle"], first["data-undone"]) == (
        *("0.97", "40.25", "40.25"),
    )
    assert (first["data-start"], first["data-dial"]) == ("0", "0f00")
    assert json.loads(str(last["data-path"])) == "e\udcff.jpg"


def test_in_place_corrections_start_from_what_was_done(tmp_path: Path) -> None:
    kept = ReportSheet("Turned upright", in_place=True)
    kept.add(OUTCOMES[0])
    kept.write(tmp_path / "sheet.html")
    made = (tmp_path / "sheet.html").read_text(encoding="utf-8")
    assert Seen(made).data[0]["data-start"] == "40.25"
    assert "--corrections corrections.json</code>" in made


def test_there_is_a_filter_for_each_kind_that_occurs(tmp_path: Path) -> None:
    filters = Seen(page(tmp_path, OUTCOMES[:3])).filters
    assert filters == ["show-all", "show-turned", "show-no-up", "show-failed"]


def test_files_beyond_the_limit_of_pictures_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sheet, "PICTURES", 2)
    assert "Pictures are shown for the first 2 files." in Seen(page(tmp_path, OUTCOMES)).text


def test_the_counts_are_separated_and_in_the_right_number(tmp_path: Path) -> None:
    quarter = {"action": "unsure", "reason": "document without a clear quarter"}
    pages = [Outcome(f"{n}.png", None, 0.0, 0.5, 1, **quarter) for n in range(2)]  # type: ignore[arg-type]
    text = Seen(page(tmp_path, [*OUTCOMES[2:3], *pages])).text
    assert "3 files: 1 no clear up found, left alone; 2 documents without a clear quarter" in text
    assert "1 file: 1 failed" in Seen(page(tmp_path, OUTCOMES[1:2])).text


def test_a_picture_with_a_small_tilt_is_not_called_upright(tmp_path: Path) -> None:
    tilted = Outcome("tilted.jpg", None, 4.0, 0.99, 1, **LEFT)  # type: ignore[arg-type]
    assert "1 file: 1 upright or nearly upright, left alone" in Seen(page(tmp_path, [tilted])).text


def test_a_picture_left_alone_only_for_its_angle_says_so(tmp_path: Path) -> None:
    unsure = {"action": "unsure", "reason": "unsure", "threshold": 0.9}
    tilted = Outcome("a.jpg", None, 39.2, 0.99, 1, **unsure, measure="exact", value=0.1)  # type: ignore[arg-type]
    seen = Seen(page(tmp_path, [tilted])).text
    assert "only by quarter turns, and this angle is none" in seen
    assert "1 file: 1 at no quarter turn, left alone" in seen
    doubtful = Outcome("a.jpg", None, 39.2, 0.3, 1, **unsure, measure="quarter", value=0.3)  # type: ignore[arg-type]
    assert "only by quarter turns" not in Seen(page(tmp_path, [doubtful])).text


def test_the_quantity_that_decided_is_named_in_words(tmp_path: Path) -> None:
    unsure = {"action": "unsure", "reason": "unsure", "value": 0.3, "threshold": 0.9}
    for measure in ("confidence", "quarter", "exact", "frame", "upright"):
        outcome = Outcome("a.jpg", None, 39.2, 0.3, 1, **unsure, measure=measure)  # type: ignore[arg-type]
        (data,) = Seen(page(tmp_path, [outcome])).data
        why = str(data["data-why"])
        assert why.startswith(("probability of", "probability that"))
        assert why.endswith(" 30.0%, threshold 90.0%")


def test_every_kind_has_a_colour() -> None:
    style = (sheet.HERE / "page.css").read_text(encoding="utf-8")
    assert [kind for kind in sheet.KINDS if f"--{sheet._slug(kind)}:" not in style] == []
