"""The documentation site: links that leave docs/ lead to copies, and the reference is complete."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import docs_site  # noqa: E402


@pytest.mark.parametrize("path", ["docs/leaks.md", "docs/reference/library.md", "CHANGELOG.md"])
def test_a_path_in_the_site_leads_back_to_the_repository(path: str) -> None:
    assert docs_site.repository_path(docs_site.site_path(path)) == path


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("docs/results.md", "leaks.md", "leaks.md"),
        ("docs/results.md", "../LICENSE", "repository/LICENSE"),
        ("docs/reference/library.md", "../leaks.md#jpeg", "../leaks.md#jpeg"),
        ("docs/reference/library.md", "../../LICENSE", "../repository/LICENSE"),
        ("radialbeams/zoo/LICENSE-WEIGHTS.md", "../../LICENSE", "../../LICENSE"),
        ("README.md", "docs/leaks.md", "../leaks.md"),
        ("docs/results.md", "https://example.org/a.md", "https://example.org/a.md"),
        ("docs/results.md", "#leaks", "#leaks"),
    ],
)
def test_links_are_rewritten_from_where_the_page_is(page: str, link: str, expected: str) -> None:
    assert docs_site.rewritten(page, f"see [it]({link}).") == f"see [it]({expected})."


def test_a_link_to_a_folder_becomes_its_text() -> None:
    assert docs_site.rewritten("README.md", "in [tests](tests) or") == "in tests or"


def test_files_that_are_linked_through_other_files_are_copied_too() -> None:
    found = docs_site.copies(["docs/models.md"])
    assert found == ["radialbeams/zoo/LICENSE-WEIGHTS.md"]


def test_every_module_is_in_the_reference_once() -> None:
    listed = [name for modules in docs_site.parts().values() for name in modules]
    files = [path for path in (ROOT / "radialbeams").rglob("*.py") if path.stem != "__main__"]
    assert len(listed) == len(set(listed)) == len(files) - 1  # the package itself: library.md
    assert {"radialbeams.canonicalizer", "radialbeams.zoo", "radialbeams.nn.beams"} <= set(listed)


def test_the_navigation_gets_a_page_for_every_part() -> None:
    section = docs_site._section({"API reference": [{"Library": "reference/library.md"}]})
    pages = [path for page in section["API reference"] for path in page.values()]
    assert pages[0] == "reference/library.md"
    assert "reference/nn.md" in pages and "reference/modules.md" in pages
