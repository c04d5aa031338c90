"""Process-wide settings that a run changes temporarily: the handling of Ctrl-C, cuDNN's search."""

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
def cudnn_search(enabled: bool) -> Iterator[None]:
    """Whether cuDNN times its algorithms and takes the fastest."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = enabled
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before
