"""Builds the responses: records as JSON, an image, or an archive of images."""

from __future__ import annotations

import io
import json
import zipfile
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from radialbeams.files import sha256
from radialbeams.serving.bodies import Upload
from radialbeams.serving.errors import CODES, Problem
from radialbeams.serving.records import FileRecord, NamedRecord, Result

# File signatures of each media type: (offset, bytes).
SIGNATURES = {
    "image/jpeg": (0, b"\xff\xd8"),
    "image/png": (0, b"\x89PNG"),
    "image/gif": (0, b"GIF8"),
    "image/webp": (8, b"WEBP"),
    "image/avif": (4, b"ftypavi"),
    "image/jp2": (4, b"jP  "),
    "image/bmp": (0, b"BM"),
    "image/x-portable-anymap": (0, b"P"),
}
TIFF = (b"II*\0", b"MM\0*")
ENDINGS = {
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
    "image/jp2": "jp2",
    "image/bmp": "bmp",
    "image/x-portable-anymap": "ppm",
    "image/tiff": "tif",
}
# Media types of the page's files, by extension.
TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "webp": "image/webp",
}
HEADERS = {
    "angle_ccw": "radialbeams-angle-ccw",
    "confidence": "radialbeams-confidence",
    "symmetry": "radialbeams-symmetry",
    "action": "radialbeams-action",
    "model": "radialbeams-model",
}
PIECE = 256 * 1024  # bytes sent at once


class Large(Response):
    """A response sent in pieces, each after the previous one: a slow client needs little memory."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        data = memoryview(self.body)
        for start in range(0, len(data), PIECE):
            body = bytes(data[start : start + PIECE])
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def as_json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    # A name from a form may contain a lone surrogate.
    data = text.encode("utf-8", "replace")
    kind = Response if len(data) <= PIECE else Large
    return kind(data, status, headers, media_type="application/json")


def problem(error: Problem) -> Response:
    headers = {"retry-after": "1"} if error.status == 503 else {}
    if error.code == "unauthorized":
        headers["www-authenticate"] = "Bearer"
    return as_json(error.content, error.status, headers)


def one(result: Result) -> Response:
    """The record of a single file; if it failed, the status code is that of its error."""
    record = result[0]
    status = CODES[record["error"]["code"]] if "error" in record else 200
    return as_json(record, status, {"retry-after": "1"} if status == 503 else None)


def image(result: Result) -> Response:
    record, data = result
    if "error" in record:
        return one(result)
    fields: Mapping[str, object] = record
    headers = {
        header: str(fields[field])
        for field, header in HEADERS.items()
        if fields.get(field) is not None
    }
    return Large(data, 200, headers, media_type=kind_of(data))


def records(uploads: Sequence[Upload], results: Sequence[Result], *, images: bool) -> Response:
    """A record for each file, with its name and, if `images`, with its image in base64."""
    listed = []
    for upload, (record, data) in zip(uploads, results, strict=True):
        content = _named(upload, record)
        if images and "error" not in record:
            content["type"] = kind_of(data)
            content["image"] = b64encode(data).decode("ascii")
        listed.append(content)
    return as_json({"results": listed})


def archive(uploads: Sequence[Upload], results: Sequence[Result]) -> Response:
    """A zip of the images that succeeded, and `results.json` with a record for each file."""
    stream, names, listed = io.BytesIO(), {"results.json"}, []
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as pack:
        for upload, (record, data) in zip(uploads, results, strict=True):
            entry = _named(upload, record)
            if "error" not in record:
                entry["file"] = _free(safe_name(upload.name, data), names)
                pack.writestr(entry["file"], data)
            listed.append(entry)
        pack.writestr("results.json", json.dumps(listed, indent=1))
    return Large(stream.getvalue(), media_type="application/zip")


def _named(upload: Upload, record: FileRecord) -> NamedRecord:
    return cast(NamedRecord, {"name": upload.name, **record})


def kind_of(data: bytes) -> str:
    for kind, (offset, start) in SIGNATURES.items():
        if data[offset : offset + len(start)] == start:
            return kind
    return "image/tiff" if data.startswith(TIFF) else "application/octet-stream"


def safe_name(name: str | None, data: bytes) -> str:
    """The name without folders, drives and unusual characters, with the extension of `data`."""
    last = PureWindowsPath(PurePosixPath(name or "image").name).name
    plain = "".join(c if c.isalnum() or c in " ._-()" else "_" for c in last).strip(" .")
    stem = PurePosixPath(plain).stem[:100] or "image"
    kind = kind_of(data)
    return f"{stem}.{ENDINGS[kind]}" if kind in ENDINGS else stem


def _free(name: str, names: set[str]) -> str:
    """The name, or the first of NAME-2, NAME-3 … that the archive does not contain."""
    path, number, free = PurePosixPath(name), 1, name
    while free.lower() in names:
        number += 1
        free = f"{path.stem}-{number}{path.suffix}"
    names.add(free.lower())
    return free


def file_of_the_page(name: str, content: bytes) -> Callable[[Request], Response]:
    """A handler that returns a file from memory: no path in a request touches the disk."""
    tag = f'"{sha256(content)[:32]}"'
    kind = TYPES[name.rpartition(".")[2]]

    def answer(request: Request) -> Response:
        headers = {"etag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=kind)

    return answer
