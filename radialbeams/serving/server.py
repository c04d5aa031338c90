"""Runs the service until a signal stops it, and then finishes the requests it has accepted."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable

from radialbeams import zoo
from radialbeams.extras import install_command
from radialbeams.serving.logs import Library
from radialbeams.serving.settings import ServiceSettings

# Seconds during which a stopping service still accepts requests and asks clients to close their
# connections, so that a request about to be sent on an open connection is not lost. After that it
# accepts no more connections, and waits as long again for requests on the newest ones.
DRAIN = 0.5
LAST = 0.05  # seconds to accept the last connections in the system's queue
FILES = 65536  # open files, if the system allows that many; each connection is one


class MissingExtra(ValueError):
    """The packages of the extra `serve` are not installed."""


def serve(settings: ServiceSettings, listening: Callable[[int], object] | None = None) -> None:
    """Runs the service and returns when it has stopped; calls `listening` with its port."""
    for name in settings.offered:
        zoo.verified_onnx(zoo.find(name))  # so that errors appear here and not in a worker
    try:
        import uvicorn

        from radialbeams.serving.app import Service
        from radialbeams.serving.connections import Connection
    except ImportError as error:
        raise MissingExtra(
            f"The service needs {error.name}, not in the light install. Install it in your clone "
            f"with: {install_command('serve')}"
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
            bound.listen(0)  # the system queues no more connections
            await asyncio.sleep(LAST)
            for listener in self.servers:
                listener.close()
            await asyncio.sleep(DRAIN)
            await super().shutdown(sockets)

    logging.getLogger().addHandler(Library(service.log))
    bound = _bound(settings.host, settings.port)
    # uvicorn raises the signal again after it has stopped; ignore it, since this stop is no error.
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
