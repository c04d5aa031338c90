"""Processes that read images: forked, so that they start at once, and never left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.pool import Pool, ThreadPool

MOST = 32
LOOK_EVERY = 1.0  # seconds


def forkable() -> bool:
    return "fork" in multiprocessing.get_all_start_methods()


def count() -> int:
    return min(MOST, os.cpu_count() or 1)


def pool() -> Pool:
    """One process for each core; threads where processes cannot be forked."""
    if not forkable():
        return ThreadPool(count())
    context = multiprocessing.get_context("fork")
    return context.Pool(count(), _begin, (os.getpid(),))


def _begin(parent: int) -> None:
    """Ctrl-C is for the parent. A parent that was killed cannot end its processes, so they look."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with, args=(parent,), daemon=True).start()


def end_with(parent: int) -> None:
    """Ends this process soon after its parent; for a thread of its own."""
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os._exit(1)
