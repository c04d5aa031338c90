"""Counts and limits the bytes of requests and responses that the service holds in memory."""

from __future__ import annotations

from dataclasses import dataclass

from radialbeams.serving.errors import Problem


@dataclass
class Held:
    """The bytes of all requests together."""

    most: int
    now: int = 0


@dataclass
class Share:
    """The bytes of one request, from its first byte until its response is sent."""

    held: Held
    size: int = 0

    def add(self, size: int) -> None:
        if self.held.now + size > self.held.most:
            raise Problem(
                "overloaded", "The service has no memory left for requests. Try again in a second."
            )
        self.size += size
        self.held.now += size

    def release(self) -> None:
        self.held.now -= self.size
        self.size = 0
