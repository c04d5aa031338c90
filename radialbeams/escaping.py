"""Makes text from files safe to print: names, cards, metadata and errors may be hostile."""

from __future__ import annotations

import json
from typing import Any

UNKNOWN = "�"


def shown(text: str) -> str:
    """The text on one line, without characters that control a terminal or the text direction.

    Control characters, line ends, bidirectional overrides, invisible characters and bytes that are
    not UTF-8 (lone surrogates) each become one replacement character.
    """
    return "".join(letter if letter.isprintable() else UNKNOWN for letter in text)


def as_json(value: Any) -> str:
    """One line of valid JSON in printable ASCII; NaN and infinities become null.

    The json module does not escape the delete character, and writes NaN, which is not valid JSON.
    """
    plain = json.loads(json.dumps(value), parse_constant=lambda name: None)
    return json.dumps(plain).replace("\x7f", "\\u007f")
