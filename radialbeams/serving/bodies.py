"""Reads the files in a request, from its raw body or the parts of a form, within memory limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from radialbeams.limits import MIB
from radialbeams.serving.errors import Problem
from radialbeams.serving.held import Share
from radialbeams.serving.settings import ServiceSettings

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

FORM = b"multipart/form-data"
LONGEST_NAME = 255  # characters
MAX_HEADERS = 16 * 1024  # bytes of a part's headers


@dataclass(frozen=True)
class Upload:
    name: str | None  # as given by the client; it is only sent back
    data: bytes


@dataclass(frozen=True)
class Body:
    uploads: list[Upload]
    is_form: bool


async def read_body(request: Request, settings: ServiceSettings, share: Share) -> Body:
    """All files of a request, once they have been received."""
    try:
        async with asyncio.timeout(settings.receive_seconds):
            chunks = _chunks(request, settings, share)
            kind, options = parse_options_header(request.headers.get("content-type"))
            if kind == FORM:
                uploads = await _form(chunks, options.get(b"boundary", b""), settings)
            else:
                uploads = [await _raw(chunks, settings)]
    except TimeoutError as error:
        raise Problem(
            "too_slow",
            f"The body did not arrive within {settings.receive_seconds:g} seconds. Send less, or "
            "use a faster connection.",
        ) from error
    except ClientDisconnect as error:
        raise Problem("bad_body", "The connection ended before the body did.") from error
    return Body(uploads, kind == FORM)


async def _chunks(
    request: Request, settings: ServiceSettings, share: Share
) -> AsyncIterator[bytes]:
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length[:20]) > settings.max_body:
        raise _too_large("a body", settings.max_body)
    async for chunk in request.stream():
        share.add(len(chunk))
        if share.size > settings.max_body:
            raise _too_large("a body", settings.max_body)
        yield chunk


async def _raw(chunks: AsyncIterator[bytes], settings: ServiceSettings) -> Upload:
    pieces, size = [], 0
    async for chunk in chunks:
        size += len(chunk)
        if size > settings.max_file_size:
            raise _too_large("a file", settings.max_file_size)
        pieces.append(chunk)
    if not size:
        raise _no_file()
    return Upload(None, b"".join(pieces))


async def _form(
    chunks: AsyncIterator[bytes], boundary: bytes, settings: ServiceSettings
) -> list[Upload]:
    if not boundary:
        raise Problem("bad_body", "The Content-Type of the form names no boundary.")
    parts = _Parts(settings)
    try:
        parser = MultipartParser(boundary, parts.callbacks())
        async for chunk in chunks:
            parser.write(chunk)
        parser.finalize()
    except MultipartParseError as error:
        raise Problem("bad_body", f"The form cannot be read ({error}).") from error
    if not parts.uploads:
        raise _no_file()
    if not parts.ended:
        raise Problem("bad_body", "The form is truncated. Send it again.")
    return parts.uploads


@dataclass
class _Parts:
    """Collects the files of a form from the callbacks of its parser."""

    settings: ServiceSettings
    uploads: list[Upload] = field(default_factory=list)
    ended: bool = False
    _field: bytes = b""
    _value: bytes = b""
    _name: str | None = None
    _data: list[bytes] = field(default_factory=list)
    _size: int = 0
    _headers: int = 0

    def callbacks(self) -> MultipartCallbacks:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_end,
            "on_part_data": self._part_data,
            "on_part_end": self._part_end,
            "on_end": self._end,
        }

    def _begin(self) -> None:
        if len(self.uploads) >= self.settings.max_files:
            raise Problem(
                "too_many_files",
                f"Expected at most {self.settings.max_files} files; got more. Send several "
                "requests.",
            )
        self._name, self._data, self._size, self._headers = None, [], 0, 0

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]
        self._count_header(end - start)

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        self._count_header(end - start)

    def _count_header(self, size: int) -> None:
        self._headers += size
        if self._headers > MAX_HEADERS:
            raise Problem("bad_body", "A part of the form has headers that are far too long.")

    def _header_end(self) -> None:
        if self._field.lower() == b"content-disposition":
            _, options = parse_options_header(self._value)
            if b"filename" in options:
                self._name = options[b"filename"].decode("utf-8", "replace")[:LONGEST_NAME]
        self._field = self._value = b""

    def _headers_end(self) -> None:
        if self._name is None:
            raise Problem(
                "bad_body",
                "The form has a part that is not a file. Options go into the URL, as in "
                "?model=ring; files need a filename.",
            )

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        self._size += end - start
        if self._size > self.settings.max_file_size:
            raise _too_large("a file", self.settings.max_file_size)
        self._data.append(data[start:end])

    def _part_end(self) -> None:
        self.uploads.append(Upload(self._name, b"".join(self._data)))

    def _end(self) -> None:
        self.ended = True


def _too_large(what: str, most: int) -> Problem:
    return Problem(
        "too_large",
        f"Expected {what} of at most {most / MIB:,.0f} MiB; got more. Send a smaller image.",
    )


def _no_file() -> Problem:
    return Problem(
        "no_file", "Expected an image as the body, or files in a multipart form; got none."
    )
