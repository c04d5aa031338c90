"""What goes wrong with a request, in one shape: a status, a code for programs, and a sentence."""

from __future__ import annotations

from typing import Any

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
    """Ends a request, or stands for one file of it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message

    @property
    def status(self) -> int:
        return CODES[self.code]

    @property
    def content(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": self.message}}
