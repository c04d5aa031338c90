"""Messages between the service and its workers, through a pipe: a JSON header, then bytes.

A frame is the length of the header in four bytes, the JSON header, and then the contents, whose
lengths the header lists under "sizes".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import BinaryIO, TypedDict

from radialbeams.serving.records import FileRecord
from radialbeams.stored import JsonDict

PREFIX = 4  # bytes


class Header(TypedDict, total=False):
    """The header of a frame: `settings`, then `tasks`, to a worker; the others from it."""

    settings: JsonDict  # the fields of ServiceSettings
    tasks: list[JsonDict]  # the fields of a FileTask for each content
    ready: bool  # the models are loaded
    broken: str  # why the worker cannot start
    records: list[FileRecord]  # one for each content
    sizes: list[int]  # bytes of each content; `packed` adds them


Frame = tuple[Header, list[bytes]]


def packed(header: Header, contents: Sequence[bytes] = ()) -> list[bytes]:
    """The pieces of a frame, not joined, since that would copy the contents."""
    text = json.dumps({**header, "sizes": [len(content) for content in contents]}).encode()
    return [len(text).to_bytes(PREFIX, "big") + text, *contents]


def parsed(text: bytes) -> Header:
    header: Header = json.loads(text)
    return header


def write(stream: BinaryIO, header: Header, contents: Sequence[bytes] = ()) -> None:
    for piece in packed(header, contents):
        stream.write(piece)
    stream.flush()


def read(stream: BinaryIO) -> Frame | None:
    """The next frame; None if the other end was closed, even in the middle of a frame."""
    prefix = stream.read(PREFIX)
    text = stream.read(int.from_bytes(prefix, "big")) if len(prefix) == PREFIX else b""
    if not text:
        return None
    header = parsed(text)
    contents = [stream.read(size) for size in header["sizes"]]
    complete = all(len(c) == size for c, size in zip(contents, header["sizes"], strict=True))
    return (header, contents) if complete else None
