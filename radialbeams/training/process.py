"""Process-wide state that a run changes temporarily: Ctrl-C, random numbers, threads, cuDNN."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


@contextmanager
def interrupt_noted() -> Iterator[Callable[[], bool]]:
    """Delays Ctrl-C to the end of the step, so that a whole step can be saved.

    Yields a function that returns whether Ctrl-C was pressed.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted.is_set  # only the main thread receives signals
        return
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        yield interrupted.is_set
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def random_numbers_kept(device: torch.device) -> Iterator[None]:
    """Restores torch's global generators at the end.

    Initial weights, dropout and stochastic depth draw from these and from no others, so a run has
    to seed them; the caller's random numbers must not depend on that.
    """
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        yield


@contextmanager
def one_thread(enabled: bool) -> Iterator[None]:
    """Computes in one thread: on a busy CPU, the threads of a small network wait for each other."""
    before = torch.get_num_threads()
    if enabled:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def cudnn_search(enabled: bool) -> Iterator[None]:
    """Whether cuDNN times its algorithms and takes the fastest."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = enabled
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before
