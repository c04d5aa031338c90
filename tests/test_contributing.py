"""CONTRIBUTING.md: its map is that of the tree, and what it names is there."""

from __future__ import annotations

import re

from conftest import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# Whose folders the map names one by one; those of tests/ mirror them.
MAPPED = ("radialbeams", "studies", "tools", "benchmarks", "examples")


def folders_on_the_map(text: str) -> set[str]:
    return set(re.findall(r"^\| `([\w/]+)/` \|", text, re.MULTILINE))


def folders_of_the_tree() -> set[str]:
    scripts = [path for top in MAPPED for path in (ROOT / top).rglob("*.py")]
    return {path.parent.relative_to(ROOT).as_posix() for path in scripts}


def test_every_folder_with_code_is_on_the_map() -> None:
    assert folders_of_the_tree() - folders_on_the_map(TEXT) == set()


def test_every_folder_on_the_map_is_there() -> None:
    assert [name for name in folders_on_the_map(TEXT) if not (ROOT / name).is_dir()] == []


def test_a_folder_that_is_missing_would_be_seen() -> None:
    shortened = TEXT.replace("| `radialbeams/front/` |", "")
    assert folders_of_the_tree() - folders_on_the_map(shortened) == {"radialbeams/front"}


def test_a_folder_has_one_line() -> None:
    lines = re.findall(r"^\| `[\w/]+/` \|.*$", TEXT, re.MULTILINE)
    assert len(lines) == len(folders_on_the_map(TEXT))


def test_the_files_that_it_names_are_there() -> None:
    named = set(re.findall(r"\b[a-z_/]+/[a-z_]+\.py\b", TEXT))
    assert named and [name for name in named if not (ROOT / name).is_file()] == []


def test_the_tests_mirror_the_package() -> None:
    """Only folders that exist in the package, or beside it, have a folder of tests."""
    folders = {path.parent.relative_to(ROOT / "tests") for path in ROOT.glob("tests/**/test_*.py")}
    for folder in folders:
        assert (ROOT / "radialbeams" / folder).is_dir() or (ROOT / folder).is_dir(), folder


def test_its_commands_are_the_makefiles() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", TEXT, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
