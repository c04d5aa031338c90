"""The page of the pretrained models: current, and complete for every card."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from radialbeams import zoo
from radialbeams.cards import to_json

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import model_cards  # noqa: E402

PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
LICENCE = (ROOT / "radialbeams" / "zoo" / "LICENSE-WEIGHTS.md").read_text(encoding="utf-8")


def test_the_page_is_current() -> None:
    assert model_cards.page() == PAGE, "Run `python tools/model_cards.py` and commit the page."


def test_a_changed_figure_makes_the_page_outdated(tmp_path: Path) -> None:
    card = json.loads((zoo.FOLDER / "ring.lfw.json").read_text(encoding="utf-8"))
    card["metrics"]["leakfree"]["mean"] += 1
    (tmp_path / "ring.lfw.json").write_text(json.dumps(card), encoding="utf-8")
    assert "| held-out images | leakfree | 28,750 | 4.39° |" in model_cards.page(tmp_path)


def test_the_default_model_comes_first_and_then_the_others_for_photos() -> None:
    sections = re.findall(r"^## `(.+)`$", PAGE, re.MULTILINE)
    assert sections[0] == zoo.DEFAULT
    assert sections[:3] == list(model_cards.ORDER)
    assert sorted(sections) == zoo.names()


@pytest.mark.parametrize("name", zoo.names())
def test_a_section_has_data_licence_errors_and_limits(name: str) -> None:
    section = PAGE.split(f"## `{name}`\n")[1].split("\n## ")[0]
    card = to_json(zoo.find(name).card)
    for text in (card["works_on"], card["fails_on"], card["licence"]):
        assert text in section
    assert f"{card['data']['training_images']:,} images" in section
    assert f"{card['end_to_end']['mean']:.2f}°" in section
    assert section.count("\n| held-out images") >= 2


@pytest.mark.parametrize("name", zoo.names())
def test_the_licence_of_the_weights_names_every_model(name: str) -> None:
    assert f"`{name}`" in LICENCE
