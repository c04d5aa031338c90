"""Processes that read images: forked, so that they start fast, and never orphaned."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.pool import Pool, ThreadPool

MOST = 32
CHECK_EVERY = 1.0  # seconds


def forkable() -> bool:
    return "fork" in multiprocessing.get_all_start_methods()


def count() -> int:
    return min(MOST, os.cpu_count() or 1)


def pool() -> Pool:
    """One process per core; threads where processes cannot be forked."""
    if not forkable():
        return ThreadPool(count())
    context = multiprocessing.get_context("fork")
    return context.Pool(count(), _begin, (os.getpid(),))


def _begin(parent: int) -> None:
    """Leaves Ctrl-C to the parent, and exits when the parent is gone: a killed one cannot tell."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with, args=(parent,), daemon=True).start()


def end_with(parent: int) -> None:
    """Exits this process soon after its parent; runs in a thread."""
    while os.getppid() == parent:
        time.sleep(CHECK_EVERY)
    os._exit(1)
