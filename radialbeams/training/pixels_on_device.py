"""The pages of a pool in the memory of the device that trains on them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from radialbeams.training.documents.pool import Pool

AT_ONCE = 1024  # pages moved in one piece


class DevicePool:
    """Copies pages as they become ready; a page keeps its number from the pool."""

    def __init__(self, pool: Pool, device: torch.device) -> None:
        self.pool, self.device = pool, device
        self.capacity = len(pool.pages)
        side = pool.pages.shape[1]
        self.pages = torch.empty((self.capacity, side, side), dtype=torch.uint8, device=device)
        self.marks = torch.zeros((self.capacity, pool.marks.shape[1]), dtype=torch.uint8)
        self.there = np.zeros(self.capacity, bool)
        self.numbers = torch.empty(0, dtype=torch.long, device=device)

    @property
    def count(self) -> int:
        return int(self.there.sum())

    def take_up(self) -> int:
        """Copies what is new; returns how many pages there are."""
        ready = self.pool.ready()
        new = ready[~self.there[ready]]
        for first in range(0, len(new), AT_ONCE):
            rows = new[first : first + AT_ONCE]
            places = torch.from_numpy(rows)
            self.pages[places.to(self.device)] = torch.from_numpy(self.pool.pages[rows]).to(self.device)
            self.marks[places] = torch.from_numpy(self.pool.marks[rows])
            self.there[rows] = True
        self.numbers = torch.from_numpy(np.flatnonzero(self.there)).to(self.device)
        self.marks_there = self.marks.to(self.device)
        return self.count

    def sample(
        self, count: int, held_out: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Pages (count, P, P) and their marks, at random from all numbers but the first ones."""
        numbers = self.numbers[self.numbers >= held_out]
        drawn = torch.randint(len(numbers), (count,), device=self.device, generator=generator)
        chosen = numbers[drawn]
        return self.pages[chosen], self.marks_there[chosen]

    def first(self, held_out: int, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The pages with the first numbers, in batches."""
        chosen = self.numbers[self.numbers < held_out]
        for part in chosen.split(batch):
            yield self.pages[part], self.marks_there[part]
