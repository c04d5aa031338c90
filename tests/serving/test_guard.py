"""Token, settings and the pieces of the service that need no process."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import pytest

from radialbeams.serving.app import Service
from radialbeams.serving.logs import Log
from radialbeams.serving.settings import Settings


def ask(service: Service, path: str, headers: dict[str, str] | None = None) -> int:
    """The status of a GET, without a server."""
    found: list[Any] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "headers": [(k.encode(), v.encode()) for k, v in (headers or {}).items()],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        found.append(message)

    asyncio.run(service.app()(scope, receive, send))
    status: int = found[0]["status"]
    return status


def made(**settings: Any) -> Service:
    return Service(
        Settings(models=("ring.coil100",), default_model="ring.coil100", **settings),
        Log(stream=io.StringIO()),
    )


def test_a_token_guards_the_api_and_the_metrics() -> None:
    service = made(token="secret")
    assert ask(service, "/v1/models") == 401
    assert ask(service, "/metrics") == 401
    assert ask(service, "/v1/models", {"authorization": "Bearer wrong"}) == 401
    assert ask(service, "/v1/models", {"authorization": "Bearer secret"}) == 200
    assert ask(service, "/healthz") == 200


def test_without_workers_the_service_is_healthy_but_not_ready() -> None:
    service = made()
    assert (ask(service, "/healthz"), ask(service, "/readyz")) == (200, 503)


def test_the_page_can_be_left_out() -> None:
    assert ask(made(page=False), "/page.json") == 404
    assert ask(made(), "/page.json") == 200


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"default_model": "none"}, "one of the models on offer"),
        ({"queue": 2, "max_files": 4}, "never fits into a queue of 2"),
        ({"max_pixels": 0}, "max_pixels must be at least 1"),
    ],
)
def test_settings_that_contradict_themselves_are_refused(settings: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Settings(**settings)
