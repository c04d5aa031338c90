"""The report in a real Chromium: what a card shows after its angle was corrected."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from radialbeams.batch import JobSettings, Outcome
from radialbeams.batch.previews import thumbnail
from radialbeams.sheet import ReportSheet

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="There is no Chromium")


def picture(folder: Path, colour: str, size: tuple[int, int]) -> str:
    path = folder / f"{colour}.png"
    image = Image.new("RGB", size, colour)
    image.paste("white", (0, 0, 20, 20))
    image.save(path)
    return thumbnail(path.read_bytes(), JobSettings("general"))


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Any]:
    sheet = ReportSheet("Turned upright")
    wide, tall = picture(tmp_path, "teal", (200, 100)), picture(tmp_path, "brown", (100, 200))
    turned = {"action": "turned", "applied_ccw": 250.0, "applied_by": "angle"}
    estimate = {"angle_ccw": 111.43, "confidence": 0.98, "symmetry": 1}
    sheet.add(Outcome("a.jpg", "o/a.jpg", **estimate, **turned, before=wide, after=tall))  # type: ignore[arg-type]
    left = {"action": "unsure", "reason": "unsure"}
    sheet.add(Outcome("b.jpg", "o/b.jpg", **estimate, **left, before=wide))  # type: ignore[arg-type]
    upright = {"angle_ccw": 198.99, "confidence": 0.27, "symmetry": 1, "reason": "upright already"}
    sheet.add(Outcome("c.jpg", "o/c.jpg", **upright, action="left", before=wide))  # type: ignore[arg-type]
    sheet.write(tmp_path / "sheet.html")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1000, "height": 800})
        opened.goto((tmp_path / "sheet.html").as_uri())
        yield opened
        browser.close()


def corrected(page: Any, number: int, angle: str) -> Any:
    card = page.locator("#files li").nth(number)
    card.locator("button.pair").click()
    page.fill("#angle", angle)
    page.click("#apply")
    return card


def test_estimate_and_what_was_done_are_named(page: Any) -> None:
    note = page.locator("#files li").first.locator(".note").inner_text()
    assert "turned by −110°" in note and "estimate 111.43° · 98%" in note


def test_the_words_on_a_card_are_not_squeezed_into_a_column(page: Any) -> None:
    page.set_viewport_size({"width": 620, "height": 800})
    card = page.locator("#files li").nth(2)
    what, estimate = (card.locator(".note span").nth(n).bounding_box() for n in (0, 1))
    assert "upright or nearly upright, left alone" in card.inner_text()
    box = card.bounding_box()
    assert what["width"] > 0.8 * box["width"]
    assert estimate["x"] + estimate["width"] <= box["x"] + box["width"]


def test_a_corrected_card_shows_the_correction(page: Any) -> None:
    for number in (0, 1):
        card = corrected(page, number, "90")
        image = card.locator("img").last
        page.wait_for_function("image => image.style.transform", arg=image.element_handle())
        assert card.locator(".what").inner_text() == "corrected to 90°"
        assert image.get_attribute("src") == card.locator("img").first.get_attribute("src")
        assert "rotate(90deg)" in str(image.get_attribute("style"))
        box, room = image.bounding_box(), card.locator("button.pair").bounding_box()
        assert box["height"] > box["width"]  # upright now
        assert box["y"] >= room["y"] - 1 and box["height"] <= room["height"] + 1
    assert page.locator("#count").inner_text() == "2 corrections"


def test_a_correction_can_be_taken_back(page: Any) -> None:
    card = page.locator("#files li").first
    after = card.locator("img").last.get_attribute("src")
    corrected(page, 0, "-12.5")
    assert card.locator(".what").inner_text() == "corrected to −12.5°"
    card.locator("button.pair").click()
    assert page.locator("#detail-after").get_attribute("src") == after
    page.click("#leave")
    assert card.locator(".what").inner_text() == "corrected: left as it was"
    page.click("#discard")
    assert card.locator(".what").inner_text() == "turned by −110°"
    assert card.locator("img").last.get_attribute("src") == after


def test_the_saved_file_holds_the_corrections(page: Any) -> None:
    corrected(page, 1, "90")
    with page.expect_download() as download:
        page.click("#save")
    saved = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert saved == {"corrections": [{"path": "b.jpg", "angle_ccw": 90}]}
