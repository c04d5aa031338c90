"""The pages of a pool in the memory of the device that trains on them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from radialbeams.training.data.documents.pool import PagePool

AT_ONCE = 512  # pages moved in one piece


class DevicePool:
    """Pages copied as they become ready; a page keeps its number in the pool."""

    def __init__(self, pool: PagePool, device: torch.device) -> None:
        self.pool, self.device = pool, device
        self.capacity, side = pool.pages.shape[:2]
        self.pages = torch.empty((self.capacity, side, side), dtype=torch.uint8, device=device)
        self.marks = torch.zeros((self.capacity, pool.marks.shape[1]), dtype=torch.uint8)
        self.copied = np.zeros(self.capacity, bool)

    @property
    def count(self) -> int:
        return int(self.copied.sum())

    def take_up(self) -> int:
        """Copies new pages; returns the number of pages."""
        ready = self.pool.ready()
        new = ready[~self.copied[ready]]
        for first in range(0, len(new), AT_ONCE):
            rows = new[first : first + AT_ONCE]
            moved = torch.from_numpy(self.pool.pages[rows]).to(self.device)
            for row, page in zip(rows, moved, strict=True):
                self.pages[int(row)].copy_(page)
            self.marks[torch.from_numpy(rows)] = torch.from_numpy(self.pool.marks[rows])
            self.copied[rows] = True
        return self.count

    def sample(
        self, count: int, held_out: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Random pages (count, P, P) and their marks, except the first ones, which are held out."""
        numbers = np.flatnonzero(self.copied)
        numbers = numbers[numbers >= held_out]
        chosen = torch.randint(len(numbers), (count,), generator=generator)
        return self._chosen(numbers[chosen.numpy()])

    def first(self, held_out: int, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The first pages, in batches."""
        numbers = np.flatnonzero(self.copied[:held_out])
        for at in range(0, len(numbers), batch):
            yield self._chosen(numbers[at : at + batch])

    def _chosen(self, numbers: np.ndarray[tuple[int], np.dtype[np.intp]]) -> tuple[Tensor, Tensor]:
        # One slice per page: the whole has more elements than 32 bits can count, and indexing
        # kernels are not made for that.
        pages = torch.stack([self.pages[int(number)] for number in numbers])
        return pages, self.marks[torch.from_numpy(numbers)].to(self.device)
