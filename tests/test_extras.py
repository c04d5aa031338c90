"""Every message that names an extra gives the same command, for an extra that exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from radialbeams.extras import install_command

ROOT = Path(__file__).parents[1]
SOURCES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "radialbeams").rglob("*.py")}


def test_no_message_has_a_command_of_its_own() -> None:
    own = [path.name for path, text in SOURCES.items() if re.search(r"radialbeams\[|\"\.\[", text)]
    assert own == ["extras.py"]


def test_every_extra_that_is_named_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {
        name
        for text in SOURCES.values()
        for name in re.findall(r"install_command\(['\"](\w+)", text)
    }
    assert {"serve", "train", "heif", "ray"} <= named <= set(project["optional-dependencies"])


def test_the_command_is_for_a_clone() -> None:
    assert install_command("serve") == 'pip install -c constraints.txt -e ".[serve]"'
