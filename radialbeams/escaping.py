"""Text from files, made safe to show: names, cards, metadata and errors are others' words."""

from __future__ import annotations

import json
from typing import Any

UNKNOWN = "�"


def shown(text: str) -> str:
    """On one line, and without a letter that commands a terminal or turns the direction of text.

    Control characters, line ends, bidirectional overrides, invisible letters and bytes that are
    no UTF-8 (lone surrogates) each become one sign.
    """
    return "".join(letter if letter.isprintable() else UNKNOWN for letter in text)


def as_json(value: Any) -> str:
    """One line of valid JSON in printable ASCII; what is no number (NaN, ∞) becomes null.

    json itself leaves the delete character as it is, and writes NaN, which no other reader takes.
    """
    plain = json.loads(json.dumps(value), parse_constant=lambda name: None)
    return json.dumps(plain).replace("\x7f", "\\u007f")
