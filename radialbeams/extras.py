"""How to install what the light install leaves out; every message takes the command from here."""

from __future__ import annotations


def install_command(extra: str) -> str:
    """The command for an extra. It is run in a clone, since no package index has the package."""
    return f'pip install -c constraints.txt -e ".[{extra}]"'
