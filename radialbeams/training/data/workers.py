"""Processes that read images: forked, so that they start fast, and never orphaned."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.pool import Pool, ThreadPool

MOST = 32
CHECK_EVERY = 1.0  # seconds


def forkable() -> bool:
    return "fork" in multiprocessing.get_all_start_methods()


def count() -> int:
    return min(MOST, os.cpu_count() or 1)


def pool(start: Callable[..., None] | None = None, *arguments: object) -> Pool:
    """One process per core; threads where processes cannot be forked.

    Each process first calls `start` with the arguments, which are inherited and not pickled.
    """
    if not forkable():
        return ThreadPool(count(), start, arguments)
    context = multiprocessing.get_context("fork")
    return context.Pool(count(), _begin, (os.getpid(), start, arguments))


def _begin(parent: int, start: Callable[..., None] | None, arguments: Sequence[object]) -> None:
    """Leaves Ctrl-C to the parent, and exits when the parent is gone: a killed one cannot tell."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with, args=(parent,), daemon=True).start()
    if start is not None:
        start(*arguments)


def end_with(parent: int) -> None:
    """Exits this process soon after its parent; runs in a thread."""
    while os.getppid() == parent:
        time.sleep(CHECK_EVERY)
    os._exit(1)
