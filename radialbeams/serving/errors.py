"""Errors of a request in one format: an HTTP status, an error code, and a message."""

from __future__ import annotations

from radialbeams.serving.records import FileRecord

CODES = {
    "bad_option": 400,
    "bad_body": 400,
    "no_file": 400,
    "unauthorized": 401,
    "not_found": 404,
    "wrong_method": 405,
    "too_slow": 408,
    "too_large": 413,
    "too_many_files": 413,
    "not_an_image": 422,
    "took_too_long": 422,
    "internal": 500,
    "overloaded": 503,
    "stopping": 503,
}


class Problem(Exception):
    """An error that ends a request, or that is the result for one of its files."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message

    @property
    def status(self) -> int:
        return CODES[self.code]

    @property
    def content(self) -> FileRecord:
        return {"error": {"code": self.code, "message": self.message}}
