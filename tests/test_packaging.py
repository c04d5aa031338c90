"""What a user installs: every import is declared, versions agree, and the licences are complete."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

import radialbeams

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "radialbeams"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Distributions whose modules have another name.
MODULES = {
    "pillow": "PIL",
    "scikit-learn": "sklearn",
    "opencv-python-headless": "cv2",
    "huggingface_hub": "huggingface_hub",
}
# Installed with a declared package, of which it is a part or a hard requirement.
WITH_OTHERS = {"scipy": "scikit-learn"}


def modules(requirements: Iterable[str]) -> set[str]:
    names = [re.match(r"[\w-]+", requirement) for requirement in requirements]
    return {MODULES.get(match[0], match[0].replace("-", "_")) for match in names if match}


LIGHT = modules(PROJECT["dependencies"])
ALL = LIGHT | modules(line for extra in PROJECT["optional-dependencies"].values() for line in extra)


def imported(source: str) -> set[str]:
    """The top-level names of all third-party imports, late ones included."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"radialbeams", "__future__"}


def imported_below(folder: Path) -> set[str]:
    files = folder.rglob("*.py") if folder.is_dir() else [folder]
    return {name for path in files for name in imported(path.read_text(encoding="utf-8"))}


# --- dependencies ---


def test_every_import_of_the_package_is_declared() -> None:
    assert imported_below(PACKAGE) - ALL - set(WITH_OTHERS) == set()


@pytest.mark.parametrize("part", ["images", "batch", "zoo", "canonicalizer.py", "cli", "demo.py"])
def test_the_light_parts_import_only_what_the_light_install_brings(part: str) -> None:
    assert imported_below(PACKAGE / part) <= LIGHT


def test_an_undeclared_import_would_be_found() -> None:
    assert imported("def f():\n    from rich.console import Console") == {"rich"}
    assert imported("import json, nobody.declared") == {"nobody"}


def test_the_extras_are_installed_from_this_package() -> None:
    """An extra that names another one exists under that name."""
    extras = PROJECT["optional-dependencies"]
    for lines in extras.values():
        for names in re.findall(r"radialbeams\[(.*?)\]", " ".join(lines)):
            assert set(names.split(",")) <= set(extras)


# --- metadata ---


def test_the_citation_and_the_changelog_name_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^version: {re.escape(radialbeams.__version__)}$", citation, re.MULTILINE)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## \[?([\w.]+)\]?", changelog, re.MULTILINE)
    assert releases[:2] == ["Unreleased", radialbeams.__version__]


def test_the_licence_files_and_the_type_marker_are_in_the_package() -> None:
    for path in PROJECT["license-files"]:
        assert (ROOT / path).is_file()
    assert (PACKAGE / "py.typed").is_file()


def test_the_hosted_checks_run_on_every_version_that_is_declared() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    declared = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    (matrix,) = re.findall(r"python: \[(.*)\]", workflow)
    assert re.findall(r"3\.\d+", matrix) == declared
    assert ".ci/run" in workflow
    assert PROJECT["requires-python"] == f">={declared[0]}"


def test_compiled_modules_are_stored_even_where_python_is_told_not_to() -> None:
    shell = "shown: ; @echo stored=$${PYTHONDONTWRITEBYTECODE-yes}"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = ["make", "--no-print-directory", "-C", str(ROOT), "--eval", shell, "shown"]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert made.stdout == "stored=yes\n"


def test_the_hooks_before_a_commit_are_the_projects_own_tools() -> None:
    """No hook is fetched from another host, so its version is the one that `make test` uses."""
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"repo: (.+)", hooks) == ["local"]
    assert set(re.findall(r"entry: \.venv/bin/(\w+)", hooks)) == {"ruff", "mypy"}
