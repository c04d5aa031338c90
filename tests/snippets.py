"""The Python snippets of a Markdown page: found, run, and compared with what stands below them.

A snippet is a fenced block of `python` or `py`. Every snippet runs, after those above it on the
same page, unless the line before its fence says why not: `<!-- not run: needs a GPU -->`. A `text`
block right below a snippet is its output.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

FENCE = re.compile(
    r"(?:<!-- not run: (?P<reason>[^\n]+?) -->\n+)?"
    r"^```(?P<kind>python|py)\n(?P<code>.*?)^```\n"
    r"(?:\n+```text\n(?P<shown>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
# How far a number may be off from one machine to the next: degrees, and points of confidence.
ROOM = {"degrees": 2, "°": 2, "% sure": 3, "in front": 3, "probability": 3}


@dataclass(frozen=True)
class Snippet:
    code: str
    shown: str | None  # the output that the page shows
    reason: str | None  # why it does not run


def snippets(page: str) -> Iterator[Snippet]:
    for match in FENCE.finditer(page):
        yield Snippet(match["code"], match["shown"], match["reason"])


def fences(page: str) -> int:
    """How many blocks of Python a page has, however they are laid out."""
    return len(re.findall(r"^\s*(?:```|~~~) ?(?:python|py)\b", page, re.MULTILINE | re.IGNORECASE))


def same(printed: str, shown: str) -> bool:
    """Word for word, line by line; angles and confidences may differ a little."""
    pairs = list(zip(printed.splitlines(), shown.splitlines(), strict=False))
    return printed.count("\n") == shown.count("\n") and all(_same_line(*pair) for pair in pairs)


def _same_line(printed: str, shown: str) -> bool:
    room = max((room for word, room in ROOM.items() if word in shown), default=0)
    words = [re.sub(r"[0-9]+", "#", text) for text in (printed, shown)]
    numbers = [[int(n) for n in re.findall(r"[0-9]+", text)] for text in (printed, shown)]
    if words[0] != words[1]:
        return False
    apart = [abs((a - b + 180) % 360 - 180) for a, b in zip(*numbers, strict=True)]
    return max(apart, default=0) <= room if room else printed == shown


def run(page: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Runs a page from top to bottom and returns the names that it defined."""
    names = {} if names is None else names
    for snippet in snippets(page):
        if snippet.reason is None:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(snippet.code, names)
            if snippet.shown is not None and not same(printed.getvalue(), snippet.shown):
                raise AssertionError(
                    f"The page shows\n{snippet.shown}but the snippet prints\n{printed.getvalue()}"
                    f"\n{snippet.code}"
                )
    return names
