"""Token, settings, slow and large bodies: what the service does before a worker is needed."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from typing import Any

import pytest

from radialbeams.serving import MissingExtra, serve
from radialbeams.serving.app import Service
from radialbeams.serving.logs import Log
from radialbeams.serving.settings import ServiceSettings


def ask(
    service: Service,
    path: str,
    headers: dict[str, str] | None = None,
    *,
    pieces: list[bytes] | None = None,
    pause: float = 0.0,
) -> tuple[int, str | None]:
    """Status and code of a GET, or of a POST that comes in pieces; without a server."""
    sent: list[Any] = []
    waiting = list(pieces or [b""])
    scope = {
        "type": "http",
        "method": "GET" if pieces is None else "POST",
        "path": path,
        "query_string": b"",
        "headers": [(k.encode(), v.encode()) for k, v in (headers or {}).items()],
    }

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(pause)
        body = waiting.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(waiting)}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(service.app()(scope, receive, send))
    content = json.loads(sent[1]["body"])
    return sent[0]["status"], content.get("error", {}).get("code")


def made(**settings: Any) -> Service:
    return Service(
        ServiceSettings(models=("ring.coil100",), default_model="ring.coil100", **settings),
        Log(stream=io.StringIO()),
    )


def test_a_token_guards_the_api_and_the_metrics() -> None:
    service = made(token="secret")
    refused, granted = (401, "unauthorized"), (200, None)
    assert ask(service, "/v1/models") == refused
    assert ask(service, "/metrics") == refused
    assert ask(service, "/v1/models", {"authorization": "Bearer wrong"}) == refused
    assert ask(service, "/v1/models", {"authorization": "Bearer secret"}) == granted
    assert ask(service, "/healthz") == granted


def test_without_workers_the_service_is_healthy_but_not_ready() -> None:
    service = made()
    assert ask(service, "/healthz") == (200, None)
    assert ask(service, "/readyz") == (503, "overloaded")


def test_the_page_can_be_left_out() -> None:
    assert ask(made(page=False), "/page.json") == (404, "not_found")
    assert ask(made(), "/page.json") == (200, None)


def test_a_body_must_arrive_in_time() -> None:
    service = made(receive_seconds=0.05)
    assert ask(service, "/v1/angle", pieces=[b"a", b"b"], pause=0.04) == (408, "too_slow")


def test_all_bodies_together_are_bounded_and_given_back() -> None:
    service = made(max_received=10)
    assert ask(service, "/v1/angle", pieces=[b"123456", b"123456"]) == (503, "overloaded")
    assert service.held.now == 0


def test_a_full_queue_refuses_before_it_reads() -> None:
    service = made(queue=1, max_files=1)
    service.pool.backlog.held = 1
    assert ask(service, "/v1/angle", pieces=[b"123"]) == (503, "overloaded")
    assert service.held.now == 0


def test_without_the_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtra, match=r'in your clone with: pip install .* -e "\.\[serve\]"'):
        serve(ServiceSettings(models=("ring.coil100",), default_model="ring.coil100"))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"default_model": "none"}, "one of the available models"),
        ({"queue": 2, "max_files": 4}, "never fits into a queue of 2"),
        ({"max_pixels": 0}, "max_pixels must be at least 1"),
    ],
)
def test_settings_that_contradict_themselves_are_refused(settings: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        ServiceSettings(**settings)
