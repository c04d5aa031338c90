"""The lowest versions that the package declares are those that `make test-minimum` installs."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]


def declared() -> dict[str, Version]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {one.name: lowest(one) for one in map(Requirement, project["dependencies"])}


def lowest(requirement: Requirement) -> Version:
    return next(Version(part.version) for part in requirement.specifier if part.operator == ">=")


def constrained() -> list[Requirement]:
    lines = (ROOT / "constraints-minimum.txt").read_text(encoding="utf-8").splitlines()
    plain = (line.partition("#")[0].strip() for line in lines)
    return [Requirement(line) for line in plain if line]


def pinned(python: str) -> dict[str, Version]:
    there = {"python_version": python}
    chosen = [one for one in constrained() if one.marker is None or one.marker.evaluate(there)]
    return {one.name: Version(str(one.specifier).removeprefix("==")) for one in chosen}


def test_every_dependency_declares_its_lowest_version_and_it_is_the_tested_one() -> None:
    assert pinned("3.11") == declared()
    assert pinned("3.12") == declared()


def test_a_newer_python_may_need_newer_versions_but_never_older_ones() -> None:
    found = pinned("3.13")
    assert found.keys() == declared().keys()
    assert all(found[name] >= version for name, version in declared().items())


def test_the_tests_for_the_lowest_versions_are_there_and_need_no_torch() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    listed = re.search(
        r"LIGHT_TESTS = \$\(addprefix tests/,\$\(addsuffix \.py,(.*?)\)\)", text, re.DOTALL
    )
    assert listed is not None
    names = listed[1].replace("\\", " ").split()
    assert len(names) >= 8
    for name in names:
        tree = ast.parse((ROOT / "tests" / f"{name}.py").read_text(encoding="utf-8"))
        assert {one for one in imported(tree) if one.startswith(HEAVY)} == set(), name


HEAVY = (
    *("torch", "onnx.", "safetensors", "sklearn", "conftest"),
    *(f"radialbeams.{part}." for part in ("nn", "front", "training", "reproduce")),
)


def imported(tree: ast.Module) -> set[str]:
    """Dotted names that are imported at the top, each with a dot at its end."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {f"{alias.name}." for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}." for alias in node.names}
    return found


def test_an_import_of_torch_by_way_of_the_package_would_be_seen() -> None:
    found = imported(ast.parse("from radialbeams import front, sheet"))
    assert [one for one in found if one.startswith(HEAVY)] == ["radialbeams.front."]
