"""Middleware for every request: token, security headers, log line, metrics, draining."""

from __future__ import annotations

import asyncio
import hmac
import time
from typing import TYPE_CHECKING

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from radialbeams.serving import answers
from radialbeams.serving.errors import Problem

if TYPE_CHECKING:
    from radialbeams.serving.app import Service

# The page loads nothing from other sites and cannot be embedded in another page. A model that runs
# in the browser is WebAssembly.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval'",
        "worker-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob: data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
# Keys under which the routes store values in the scope of a request.
SHARE, FILES, BYTES = "radialbeams.share", "radialbeams.files", "radialbeams.bytes"
SEND_SECONDS = 30.0  # for each piece of a response; a slower client is disconnected
ROUTES = ("/v1/angle", "/v1/upright", "/v1/models", "/healthz", "/readyz", "/metrics")


class Guard:
    """Wraps the routes; plain ASGI middleware, because it runs for every request."""

    def __init__(self, inner: ASGIApp, service: Service) -> None:
        self._inner, self._service = inner, service
        token = service.settings.token
        self._expected = None if token is None else b"Bearer " + token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        started, status = time.perf_counter(), 500
        self._service.metrics.begun += 1
        path = scope["path"]

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(path, MutableHeaders(scope=message))
            async with asyncio.timeout(SEND_SECONDS):
                await send(message)

        try:
            if self._is_authorised(scope):
                await self._inner(scope, receive, send_with_headers)
            else:
                refused = Problem(
                    "unauthorized", "Expected the header Authorization: Bearer TOKEN."
                )
                await answers.problem(refused)(scope, receive, send_with_headers)
        finally:
            if SHARE in scope:
                scope[SHARE].release()
            self._note(scope, path, status, time.perf_counter() - started)

    def _is_authorised(self, scope: Scope) -> bool:
        """Whether a request is authorised. The page and the health checks need no token."""
        if self._expected is None or not scope["path"].startswith(("/v1/", "/metrics")):
            return True
        credentials = dict(scope["headers"]).get(b"authorization", b"")
        return hmac.compare_digest(credentials, self._expected)

    def _add_headers(self, path: str, headers: MutableHeaders) -> None:
        for name, value in HEADERS.items():
            headers[name] = value
        # The page's files may change with the version, so a browser must revalidate them.
        headers["cache-control"] = "no-store" if path.startswith("/v1/") else "no-cache"
        if self._service.draining:
            headers["connection"] = "close"

    def _note(self, scope: Scope, path: str, status: int, seconds: float) -> None:
        route = path if path in ROUTES else "other"
        self._service.metrics.request(route, status, seconds)
        self._service.log.request(
            method=scope["method"][:20],
            route=route,
            status=status,
            ms=round(seconds * 1000, 1),
            files=scope.get(FILES, 0),
            bytes=scope.get(BYTES, 0),
        )
