"""How many bytes of requests and answers the service holds in memory, and its limit on them."""

from __future__ import annotations

from dataclasses import dataclass

from radialbeams.serving.errors import Problem


@dataclass
class Held:
    """Of all requests together."""

    most: int
    now: int = 0


@dataclass
class Share:
    """Of one request, from its first byte until its answer is sent."""

    held: Held
    size: int = 0

    def add(self, size: int) -> None:
        if self.held.now + size > self.held.most:
            raise Problem(
                "overloaded", "The service holds too many bytes already. Try again in a second."
            )
        self.size += size
        self.held.now += size

    def release(self) -> None:
        self.held.now -= self.size
        self.size = 0
