"""How a service is set up: where it listens, what it offers, and its limits."""

from __future__ import annotations

import os
from dataclasses import dataclass

from radialbeams import zoo
from radialbeams.limits import GIB, MIB, Limits


@dataclass(frozen=True)
class Settings:
    """Defaults are for a service on this machine alone, open to hostile files."""

    host: str = "127.0.0.1"
    port: int = 8000
    models: tuple[str, ...] = ()  # empty: all shipped ones
    default_model: str = zoo.DEFAULT
    workers: int = 0  # 0: one for each core
    token: str | None = None  # which requests to /v1 must bear
    page: bool = True  # else only the API
    log: bool = True  # a line for each request

    # A file: limits that are lower than the command's, because strangers send the files.
    max_file_size: int = 32 * MIB
    max_pixels: int = 60_000_000
    max_memory: int = 2 * GIB  # of a worker, while it reads, turns and writes
    seconds: float = 10.0  # of computing for one file
    # A request.
    max_files: int = 64
    max_body: int = 128 * MIB
    receive_seconds: float = 30.0  # until the whole body has arrived
    # All requests together.
    queue: int = 256  # files that wait or are worked on
    max_received: int = 512 * MIB  # bytes of all bodies that are held at once
    stop_seconds: float = 60.0  # for accepted work, when the service stops

    def __post_init__(self) -> None:
        if self.default_model not in self.offered:
            raise ValueError(
                f"The default model must be one of the models on offer "
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
