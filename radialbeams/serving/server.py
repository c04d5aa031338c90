"""Runs the service until it is told to stop, and then finishes what it has accepted."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable

from radialbeams import zoo
from radialbeams.serving.logs import Library
from radialbeams.serving.settings import Settings

# Seconds in which a service that is to stop still takes requests, and asks each client to close
# its connection: whoever was about to send one on an open connection is not cut off. Then nobody
# can connect any more, and what is on its way on new connections has as long again to arrive.
DRAIN = 0.5
LAST = 0.05  # seconds in which the last connections that the system has queued are accepted
FILES = 65536  # open files, if the system allows so many: each connection is one


class MissingExtra(ValueError):
    """The packages of the extra `serve` are not installed."""


def serve(settings: Settings, listening: Callable[[int], object] | None = None) -> None:
    """Returns when the service has stopped; `listening` is called with its port."""
    for name in settings.offered:
        zoo.verified_onnx(zoo.find(name))  # better now than in a worker
    try:
        import uvicorn

        from radialbeams.serving.app import Service
        from radialbeams.serving.connections import Connection
    except ImportError as error:
        raise MissingExtra(
            f"The service needs {error.name}. Install it with: pip install 'radialbeams[serve]'"
        ) from error
    _allow_many_connections()
    service = Service(settings)
    config = uvicorn.Config(
        service.app(),
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=max(1, int(settings.stop_seconds)),
        backlog=2048,
    )

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if listening is not None and self.started:
                listening(bound.getsockname()[1])

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            service.draining = True
            service.log.event("stopping")
            await asyncio.sleep(DRAIN)
            bound.listen(0)  # the system queues no more
            await asyncio.sleep(LAST)
            for listener in self.servers:
                listener.close()
            await asyncio.sleep(DRAIN)
            await super().shutdown(sockets)

    logging.getLogger().addHandler(Library(service.log))
    bound = _bound(settings.host, settings.port)
    # uvicorn raises the signal again when it has stopped; a stop that was asked for is no error.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    Server(config).run([bound])
    service.log.event("stopped", begun=service.metrics.begun, answered=service.metrics.answered)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        raise OSError(
            f"Cannot listen at {host}:{port} ({error.strerror}). Choose another --port."
        ) from error
    sock.set_inheritable(False)
    return sock


def _allow_many_connections() -> None:
    from radialbeams.batch.system import resource

    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
