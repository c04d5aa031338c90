"""The settings of the service: where it listens, which models it offers, and its limits."""

from __future__ import annotations

import os
from dataclasses import dataclass

from radialbeams import zoo
from radialbeams.limits import GIB, MIB, Limits


@dataclass(frozen=True)
class ServiceSettings:
    """The defaults suit a service for this machine only, which may receive hostile files."""

    host: str = "127.0.0.1"
    port: int = 8000
    models: tuple[str, ...] = ()  # empty: all pretrained models
    default_model: str = zoo.DEFAULT
    workers: int = 0  # 0: one per core
    token: str | None = None  # required in requests to /v1 and /metrics
    page: bool = True  # False: only the API
    log: bool = True  # one line per request

    # Limits of a file: lower than those of the command, because strangers send the files.
    max_file_size: int = 32 * MIB
    max_pixels: int = 60_000_000
    max_memory: int = 2 * GIB  # of a worker, while it reads, turns and writes
    seconds: float = 10.0  # of CPU time for one file
    # Limits of a request.
    max_files: int = 64
    max_body: int = 128 * MIB
    receive_seconds: float = 30.0  # until the whole body has been received
    # Limits of all requests together.
    queue: int = 256  # files that wait or are being processed
    max_received: int = 512 * MIB  # bytes of requests and responses held in memory at once
    stop_seconds: float = 60.0  # for accepted requests, when the service stops

    def __post_init__(self) -> None:
        if self.default_model not in self.offered:
            raise ValueError(
                f"The default model must be one of the available models "
                f"({', '.join(self.offered)}); got {self.default_model!r}."
            )
        for name in ("max_file_size", "max_pixels", "max_memory", "max_files", "max_body", "queue"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1; got {getattr(self, name)}.")
        if self.max_files > self.queue:
            raise ValueError(
                f"A request of {self.max_files} files never fits into a queue of {self.queue}. "
                "Allow fewer files, or make the queue longer."
            )

    @property
    def offered(self) -> tuple[str, ...]:
        return self.models or tuple(zoo.names())

    @property
    def processes(self) -> int:
        if self.workers:
            return self.workers
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1

    @property
    def limits(self) -> Limits:
        return Limits(self.max_pixels, self.max_memory, self.max_file_size)
