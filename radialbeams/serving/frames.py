"""Messages between the service and its workers: a JSON header, then bytes, through a pipe.

A frame is four bytes of length, so many bytes of JSON, and one after the other the contents whose
lengths the JSON lists under "sizes".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, BinaryIO

PREFIX = 4  # bytes


def packed(header: dict[str, Any], contents: Sequence[bytes] = ()) -> list[bytes]:
    """The pieces of a frame; joining them would copy the contents."""
    text = json.dumps({**header, "sizes": [len(content) for content in contents]}).encode()
    return [len(text).to_bytes(PREFIX, "big") + text, *contents]


def parsed(text: bytes) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(text)
    return header


def write(stream: BinaryIO, header: dict[str, Any], contents: Sequence[bytes] = ()) -> None:
    for piece in packed(header, contents):
        stream.write(piece)
    stream.flush()


def read(stream: BinaryIO) -> tuple[dict[str, Any], list[bytes]] | None:
    """The next frame; None where the other end was closed, also in the middle of a frame."""
    prefix = stream.read(PREFIX)
    text = stream.read(int.from_bytes(prefix, "big")) if len(prefix) == PREFIX else b""
    if not text:
        return None
    header = parsed(text)
    contents = [stream.read(size) for size in header["sizes"]]
    whole = all(len(c) == size for c, size in zip(contents, header["sizes"], strict=True))
    return (header, contents) if whole else None
